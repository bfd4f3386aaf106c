#include "tensorboard/summary_decode.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <protozero/pbf_reader.hpp>

#include "base/errors.h"
#include "base/utf8.h"
#include "tornasole/tensor.h"

namespace tornasole::tensorboard {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

constexpr std::size_t kMaxRank = 255;
// One number in the message may stand for a whole tensor of it; beyond this many it stands for an attack.
constexpr std::int64_t kMaxRepeated = std::int64_t{1} << 16;

// Field and wire type together: a known number with another wire type is skipped as unknown, as protobuf does.
constexpr std::uint32_t varint_field(std::uint32_t number) { return tag_and_type(number, pbf_wire_type::varint); }
constexpr std::uint32_t fixed32_field(std::uint32_t number) { return tag_and_type(number, pbf_wire_type::fixed32); }
constexpr std::uint32_t fixed64_field(std::uint32_t number) { return tag_and_type(number, pbf_wire_type::fixed64); }
constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return tag_and_type(number, pbf_wire_type::length_delimited);
}

ByteView take_bytes(pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}
pbf_reader message_of(ByteView bytes) { return {bytes.data(), bytes.size()}; }
std::string text_of(ByteView bytes) { return replace_bad_utf8(bytes); }

// ---- tensors

Result<std::vector<std::int64_t>> decode_dims(ByteView bytes) {
  std::vector<std::int64_t> dims;
  pbf_reader shape = message_of(bytes);
  while (shape.next()) {
    if (shape.tag_and_type() != bytes_field(2)) {
      shape.skip();
      continue;
    }
    if (dims.size() == kMaxRank) return corrupt_error("the shape has more than {} dimensions", kMaxRank);
    std::int64_t extent = 0;
    pbf_reader dim = message_of(take_bytes(shape));
    while (dim.next()) {
      if (dim.tag_and_type() == varint_field(1)) {
        extent = dim.get_int64();
      } else {
        dim.skip();
      }
    }
    if (extent < 0) return corrupt_error("the shape has the negative extent {}", extent);
    dims.push_back(extent);
  }
  return dims;
}

// The numbers of a tensor are its content, or in a list by type.
class TensorReader {
 public:
  Result<SummaryTensor> read(ByteView bytes) {
    pbf_reader tensor = message_of(bytes);
    while (tensor.next()) TORNASOLE_CHECK(read_field(tensor));
    if (dtype_ == static_cast<std::uint64_t>(DType::kString)) return out_;
    TORNASOLE_CHECK(take_content());
    return fill();
  }

 private:
  template <typename Number, typename Range>
  void add_packed(const Range& range) {
    for (const auto number : range) out_.numbers.push_back(static_cast<double>(static_cast<Number>(number)));
  }

  Status read_field(pbf_reader& tensor) {
    switch (tensor.tag_and_type()) {
      case varint_field(1): dtype_ = tensor.get_uint64(); break;
      case bytes_field(2): {
        TORNASOLE_TRY(out_.dims, decode_dims(take_bytes(tensor)));
        break;
      }
      case bytes_field(4): content_ = take_bytes(tensor); break;
      case bytes_field(5): add_packed<float>(tensor.get_packed_float()); break;
      case fixed32_field(5): out_.numbers.push_back(static_cast<double>(tensor.get_float())); break;
      case bytes_field(6): add_packed<double>(tensor.get_packed_double()); break;
      case fixed64_field(6): out_.numbers.push_back(tensor.get_double()); break;
      case bytes_field(7): add_packed<std::int32_t>(tensor.get_packed_int32()); break;
      case varint_field(7): out_.numbers.push_back(tensor.get_int32()); break;
      case bytes_field(8): out_.texts.push_back(text_of(take_bytes(tensor))); break;
      case bytes_field(10): add_packed<std::int64_t>(tensor.get_packed_int64()); break;
      case varint_field(10): out_.numbers.push_back(static_cast<double>(tensor.get_int64())); break;
      case bytes_field(11): add_packed<bool>(tensor.get_packed_bool()); break;
      case varint_field(11): out_.numbers.push_back(tensor.get_bool() ? 1 : 0); break;
      case bytes_field(16): add_packed<std::uint32_t>(tensor.get_packed_uint32()); break;
      case bytes_field(17): add_packed<std::uint64_t>(tensor.get_packed_uint64()); break;
      default: tensor.skip();
    }
    return {};
  }

  template <typename Number>
  Status widen() {
    if (content_.size() % sizeof(Number) != 0) {
      return corrupt_error("the content of {} bytes is no whole number of elements", content_.size());
    }
    out_.numbers.clear();
    out_.numbers.reserve(content_.size() / sizeof(Number));
    for (std::size_t at = 0; at < content_.size(); at += sizeof(Number)) {
      Number number;
      std::memcpy(&number, content_.data() + at, sizeof number);
      out_.numbers.push_back(static_cast<double>(number));
    }
    return {};
  }

  Status take_content() {
    if (content_.empty()) return {};
    switch (static_cast<DType>(dtype_)) {
      case DType::kFloat32: return widen<float>();
      case DType::kFloat64: return widen<double>();
      case DType::kInt32: return widen<std::int32_t>();
      case DType::kInt64: return widen<std::int64_t>();
      case DType::kUint8: return widen<std::uint8_t>();
      case DType::kInt8: return widen<std::int8_t>();
      case DType::kInt16: return widen<std::int16_t>();
      case DType::kUint16: return widen<std::uint16_t>();
      case DType::kUint32: return widen<std::uint32_t>();
      case DType::kUint64: return widen<std::uint64_t>();
      case DType::kBool: return widen<std::uint8_t>();
      default: return {};  // a type that no scalar or histogram has: read as a tensor without numbers
    }
  }

  // The last number of a list stands for all that follow.
  Result<SummaryTensor> fill() {
    std::int64_t count = 1;
    for (const std::int64_t extent : out_.dims) {
      if (extent != 0 && count > std::numeric_limits<std::int64_t>::max() / extent) {
        return corrupt_error("the shape has more elements than can be counted");
      }
      count *= extent;
    }
    const auto have = static_cast<std::int64_t>(out_.numbers.size());
    if (have == count || have == 0) return out_;
    if (have > count || count > kMaxRepeated) {
      return corrupt_error("the tensor has {} elements, but its shape asks for {}", have, count);
    }
    out_.numbers.resize(static_cast<std::size_t>(count), out_.numbers.back());
    return out_;
  }

  SummaryTensor out_;
  std::uint64_t dtype_ = 0;
  ByteView content_;
};

// ---- values

SummaryHistogram decode_histogram(ByteView bytes) {
  SummaryHistogram out;
  pbf_reader histo = message_of(bytes);
  const auto add = [](const auto& range, std::vector<double>* to) {
    to->insert(to->end(), range.begin(), range.end());
  };
  while (histo.next()) {
    switch (histo.tag_and_type()) {
      case fixed64_field(1): out.min = histo.get_double(); break;
      case fixed64_field(2): out.max = histo.get_double(); break;
      case fixed64_field(3): out.num = histo.get_double(); break;
      case fixed64_field(4): out.sum = histo.get_double(); break;
      case fixed64_field(5): out.sum_squares = histo.get_double(); break;
      case bytes_field(6): add(histo.get_packed_double(), &out.bucket_limit); break;
      case fixed64_field(6): out.bucket_limit.push_back(histo.get_double()); break;
      case bytes_field(7): add(histo.get_packed_double(), &out.bucket); break;
      case fixed64_field(7): out.bucket.push_back(histo.get_double()); break;
      default: histo.skip();
    }
  }
  return out;
}

void decode_plugin(ByteView metadata_bytes, SummaryValue* value) {
  pbf_reader metadata = message_of(metadata_bytes);
  while (metadata.next()) {
    if (metadata.tag_and_type() != bytes_field(1)) {
      metadata.skip();
      continue;
    }
    pbf_reader plugin = message_of(take_bytes(metadata));
    while (plugin.next()) {
      switch (plugin.tag_and_type()) {
        case bytes_field(1): value->plugin = text_of(take_bytes(plugin)); break;
        case bytes_field(2): value->plugin_content = take_bytes(plugin); break;
        default: plugin.skip();
      }
    }
  }
}

Result<SummaryValue> decode_value(ByteView bytes) {
  SummaryValue value;
  pbf_reader entry = message_of(bytes);
  while (entry.next()) {
    switch (entry.tag_and_type()) {
      case bytes_field(1): value.tag = text_of(take_bytes(entry)); break;
      case fixed32_field(2): value.simple_value = entry.get_float(); break;
      case bytes_field(4):
        value.has_image = true;
        entry.skip();
        break;
      case bytes_field(5): {
        value.histogram = decode_histogram(take_bytes(entry));
        if (value.histogram->bucket.size() != value.histogram->bucket_limit.size()) {
          return corrupt_error("the histogram '{}' has {} buckets and {} limits", printable(value.tag),
                               value.histogram->bucket.size(), value.histogram->bucket_limit.size());
        }
        break;
      }
      case bytes_field(6):
        value.has_audio = true;
        entry.skip();
        break;
      case bytes_field(8): {
        TORNASOLE_TRY(value.tensor, TensorReader().read(take_bytes(entry)));
        break;
      }
      case bytes_field(9): decode_plugin(take_bytes(entry), &value); break;
      default: entry.skip();
    }
  }
  return value;
}

Result<SummaryEvent> decode_fields(ByteView payload) {
  SummaryEvent out;
  pbf_reader event = message_of(payload);
  while (event.next()) {
    switch (event.tag_and_type()) {
      case fixed64_field(1): out.wall_time = event.get_double(); break;
      case varint_field(2): out.step = event.get_int64(); break;
      case bytes_field(3): out.file_version = text_of(take_bytes(event)); break;
      case bytes_field(4): out.graph_def = take_bytes(event); break;
      case bytes_field(5): {
        pbf_reader summary = message_of(take_bytes(event));
        while (summary.next()) {
          if (summary.tag_and_type() != bytes_field(1)) {
            summary.skip();
            continue;
          }
          TORNASOLE_TRY(SummaryValue value, decode_value(take_bytes(summary)));
          out.values.push_back(std::move(value));
        }
        break;
      }
      default: event.skip();
    }
  }
  return out;
}

}  // namespace

Result<SummaryEvent> decode_summary_event(ByteView payload) {
  // The library reports bad wire format by exceptions; they end here.
  try {
    return decode_fields(payload);
  } catch (const protozero::exception& error) {
    return corrupt_error("the event is not a protobuf message: {}", error.what());
  }
}

}  // namespace tornasole::tensorboard
