#include <charconv>
#include <protozero/pbf_reader.hpp>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/event.h"
#include "format/event_limits.h"

namespace tornasole::format {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

// Field and wire type together: a known number with another wire type is skipped as unknown, as protobuf does.
constexpr std::uint32_t varint_field(std::uint32_t number) { return tag_and_type(number, pbf_wire_type::varint); }
constexpr std::uint32_t fixed64_field(std::uint32_t number) { return tag_and_type(number, pbf_wire_type::fixed64); }
constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return tag_and_type(number, pbf_wire_type::length_delimited);
}

ByteView take_bytes(pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

// What the tensor message says, before it was checked against itself.
struct RawTensor {
  std::uint64_t dtype = 0;
  std::vector<std::int64_t> dims = {};
  ByteView content = {};
  std::vector<ByteView> texts = {};
};

Result<std::int64_t> decode_dim(ByteView bytes) {
  std::int64_t extent = 0;
  pbf_reader dim(bytes.data(), bytes.size());
  while (dim.next()) {
    if (dim.tag_and_type() == varint_field(1)) {
      extent = dim.get_int64();
    } else {
      dim.skip();
    }
  }
  if (extent < 0) return corrupt_error("the shape has the negative extent {}", extent);
  return extent;
}

Result<std::vector<std::int64_t>> decode_shape(ByteView bytes) {
  std::vector<std::int64_t> dims;
  pbf_reader shape(bytes.data(), bytes.size());
  while (shape.next()) {
    if (shape.tag_and_type() != bytes_field(2)) {
      shape.skip();
      continue;
    }
    if (dims.size() == kMaxRank) return corrupt_error("the shape has more than {} dimensions", kMaxRank);
    TORNASOLE_TRY(const std::int64_t extent, decode_dim(take_bytes(shape)));
    dims.push_back(extent);
  }
  return dims;
}

Result<RawTensor> decode_raw_tensor(ByteView bytes) {
  RawTensor raw;
  pbf_reader tensor(bytes.data(), bytes.size());
  while (tensor.next()) {
    switch (tensor.tag_and_type()) {
      case varint_field(1): raw.dtype = tensor.get_uint64(); break;
      case bytes_field(2): {
        TORNASOLE_TRY(raw.dims, decode_shape(take_bytes(tensor)));
        break;
      }
      case bytes_field(4): raw.content = take_bytes(tensor); break;
      case bytes_field(8):
        if (raw.texts.size() == kMaxTexts) return corrupt_error("the tensor has more than {} texts", kMaxTexts);
        raw.texts.push_back(take_bytes(tensor));
        break;
      default: tensor.skip();
    }
  }
  return raw;
}

Status take_texts(const RawTensor& raw, Event* event) {
  event->dtype = DType::kString;
  event->is_dtype_absent = raw.dtype == 0;
  if (!raw.content.empty()) {
    return corrupt_error("the tensor has type code {} and {} bytes of content", raw.dtype, raw.content.size());
  }
  if (static_cast<std::uint64_t>(event->shape.element_count()) != raw.texts.size()) {
    return corrupt_error("the shape {} does not fit {} texts", event->shape.to_string(), raw.texts.size());
  }
  event->texts.reserve(raw.texts.size());
  for (const ByteView text : raw.texts) {
    if (!is_valid_utf8(text)) return corrupt_error("text {} is not UTF-8", event->texts.size());
    event->texts.emplace_back(text);
  }
  return {};
}

Status take_numbers(const RawTensor& raw, Event* event) {
  const auto dtype = raw.dtype > UINT8_MAX ? DType{} : static_cast<DType>(raw.dtype);
  const std::uint64_t item = dtype_size(dtype);
  if (item == 0) return corrupt_error("unknown type code {}", raw.dtype);
  if (!raw.texts.empty()) return corrupt_error("the tensor has type code {} and {} texts", raw.dtype, raw.texts.size());
  event->dtype = dtype;
  event->content = raw.content;
  // Compared by division, since the product may not fit.
  const auto count = static_cast<std::uint64_t>(event->shape.element_count());
  const std::uint64_t size = raw.content.size();
  if (size % item == 0 && size / item == count) return {};
  if (dtype == DType::kInt32 && size % 2 == 0 && size / 2 == count) {
    event->dtype = DType::kFloat16;
    return {};
  }
  return corrupt_error("{} bytes of content do not fit the shape {} of {}", size, event->shape.to_string(),
                       dtype_name(dtype));
}

Status decode_tensor(ByteView bytes, Event* event) {
  TORNASOLE_TRY(const RawTensor raw, decode_raw_tensor(bytes));
  event->has_tensor = true;
  event->shape = Shape(std::span<const std::int64_t>(raw.dims));
  if (event->shape.element_count() < 0) {
    return corrupt_error("the shape {} has too many elements", event->shape.to_string());
  }
  const bool is_text = raw.dtype == 0 || raw.dtype == static_cast<std::uint64_t>(DType::kString);
  return is_text ? take_texts(raw, event) : take_numbers(raw, event);
}

Result<std::int64_t> decode_number(ByteView digits, std::string_view what, std::int64_t lowest) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < lowest) {
    return corrupt_error("{} is \"{}\", not a number from {} on", what, printable(digits.substr(0, 40)), lowest);
  }
  return number;
}

// mode_step and mode are looked for by name; the order and other plugins do not matter.
Status decode_plugin(ByteView bytes, std::optional<Mode>* mode, std::optional<std::int64_t>* mode_step) {
  ByteView name;
  ByteView content;
  pbf_reader plugin(bytes.data(), bytes.size());
  while (plugin.next()) {
    switch (plugin.tag_and_type()) {
      case bytes_field(1): name = take_bytes(plugin); break;
      case bytes_field(2): content = take_bytes(plugin); break;
      default: plugin.skip();
    }
  }
  if (name == "mode_step") {
    // The reference writes -1 with a scalar saved between the choice of a mode and the first step in it.
    TORNASOLE_TRY(*mode_step, decode_number(content, "mode_step", -1));
  } else if (name == "mode") {
    TORNASOLE_TRY(const std::int64_t number, decode_number(content, "mode", 0));
    if (number < 1 || number > 4) return corrupt_error("mode is {}, not 1, 2, 3 or 4", number);
    *mode = static_cast<Mode>(number);
  }
  return {};
}

Status decode_metadata(ByteView bytes, std::optional<Mode>* mode, std::optional<std::int64_t>* mode_step) {
  pbf_reader metadata(bytes.data(), bytes.size());
  while (metadata.next()) {
    if (metadata.tag_and_type() == bytes_field(1)) {
      TORNASOLE_CHECK(decode_plugin(take_bytes(metadata), mode, mode_step));
    } else {
      metadata.skip();
    }
  }
  return {};
}

Status decode_value(ByteView bytes, Event* event, std::optional<Mode>* mode, std::optional<std::int64_t>* mode_step) {
  pbf_reader value(bytes.data(), bytes.size());
  while (value.next()) {
    switch (value.tag_and_type()) {
      case bytes_field(1): {
        const ByteView name = take_bytes(value);
        if (!is_valid_utf8(name)) return corrupt_error("the tensor's name is not UTF-8");
        event->name = name;
        break;
      }
      case bytes_field(8):
        if (event->has_tensor) return corrupt_error("the value has two tensors");
        TORNASOLE_CHECK(decode_tensor(take_bytes(value), event));
        break;
      case bytes_field(9): TORNASOLE_CHECK(decode_metadata(take_bytes(value), mode, mode_step)); break;
      default: value.skip();
    }
  }
  return {};
}

// May throw what the wire-format library throws.
Result<Event> decode_fields(ByteView payload) {
  Event event;
  ByteView summary_bytes;
  pbf_reader message(payload.data(), payload.size());
  while (message.next()) {
    switch (message.tag_and_type()) {
      case fixed64_field(1): event.wall_time = message.get_double(); break;
      case varint_field(2): event.global_step = message.get_int64(); break;
      case bytes_field(5): summary_bytes = take_bytes(message); break;
      default: message.skip();
    }
  }
  std::optional<Mode> mode;
  std::optional<std::int64_t> mode_step;
  pbf_reader summary(summary_bytes.data(), summary_bytes.size());
  bool is_first = true;
  while (summary.next()) {
    // Only the first value counts, as for the reference.
    if (summary.tag_and_type() == bytes_field(1) && is_first) {
      is_first = false;
      TORNASOLE_CHECK(decode_value(take_bytes(summary), &event, &mode, &mode_step));
    } else {
      summary.skip();
    }
  }
  event.mode = mode.value_or(Mode::kGlobal);
  event.mode_step = mode_step.value_or(event.global_step);
  return event;
}

}  // namespace

Result<Event> decode_event(ByteView payload) {
  // The library reports bad wire format by exceptions; they end here.
  try {
    return decode_fields(payload);
  } catch (const protozero::exception& error) {
    return corrupt_error("the event is not a protobuf message: {}", error.what());
  }
}

Tensor Event::to_tensor() const {
  if (dtype == DType::kString) return Tensor(texts, shape);
  return Tensor(dtype, shape, Bytes(content));
}

}  // namespace tornasole::format
