// Of a key that comes twice in one object the last value counts, as for the reference.

#include <array>
#include <optional>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/event_limits.h"
#include "format/file_checksum.h"
#include "format/index.h"
#include "format/json_walk.h"

namespace tornasole::format {
namespace {

using namespace walk;

constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;

// Which of the known keys of one object were seen.
class SeenKeys {
 public:
  // The place of `key` in `known`, or -1.
  template <std::size_t N>
  int note(const std::array<std::string_view, N>& known, std::string_view key) noexcept {
    for (std::size_t i = 0; i < N; ++i) {
      if (known[i] != key) continue;
      seen_ |= 1U << i;
      return static_cast<int>(i);
    }
    return -1;
  }
  bool has(int place) const noexcept { return ((seen_ >> static_cast<unsigned>(place)) & 1U) != 0; }

 private:
  unsigned seen_ = 0;
};

// The path with single slashes and without "." and "..": the reference's system follows those, our store has plain
// names only. An empty name is good: it says that no file holds the values. Index files made by hand have it.
Result<std::string> plain_event_file(std::string_view path) {
  const auto outside = [path] {
    return corrupt_error("event_file_name is \"{}\", which does not lie inside the trial",
                         printable(path.substr(0, 200)));
  };
  if (path.starts_with('/') || path.find('\0') != std::string_view::npos) return outside();
  std::string plain;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, slash - at);
    at = slash + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (plain.empty()) return outside();
      const std::size_t parent = plain.rfind('/');
      plain.resize(parent == std::string::npos ? 0 : parent);
      continue;
    }
    if (!plain.empty()) plain += '/';
    plain += name;
  }
  if (plain.empty() && !path.empty()) return outside();
  return plain;
}

std::string_view without_space_around(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// Which keys of meta were there.
struct MetaKeys {
  bool mode_and_step = false;
  bool event_file = false;
};

Status read_meta(od::value value, Index* index, MetaKeys* keys) {
  static constexpr std::array<std::string_view, 9> kKeys = {"mode",         "mode_step",        "event_file_name",
                                                            "partial",      "optimizer_step",   "training",
                                                            "grad_enabled", "backward_in_eval", "grad_scale"};
  SeenKeys seen;
  *index = {};
  TORNASOLE_CHECK(for_each_field(value, "meta", [&](std::string_view key, od::value v) -> Status {
    switch (seen.note(kKeys, key)) {
      case 0: {
        TORNASOLE_TRY(const std::string_view name, read_string(v, "mode"));
        for (const Mode mode : kAllModes) {
          if (mode_name(mode) != without_space_around(name)) continue;
          index->mode = mode;
          return {};
        }
        return corrupt_error("mode is \"{}\", not TRAIN, EVAL, PREDICT or GLOBAL", printable(name.substr(0, 40)));
      }
      case 1: {
        TORNASOLE_TRY(index->mode_step, read_integer(v, "mode_step", 0));
        return {};
      }
      case 2: {
        TORNASOLE_TRY(const std::string_view path, read_string(v, "event_file_name"));
        TORNASOLE_TRY(index->event_file, plain_event_file(path));
        return {};
      }
      case 3: {
        TORNASOLE_TRY(index->is_partial, read_bool(v, "partial"));
        return {};
      }
      case 4: {
        TORNASOLE_TRY(index->optimizer_step, read_integer(v, "optimizer_step", 0));
        return {};
      }
      case 5: {
        TORNASOLE_TRY(index->training, read_bool(v, "training"));
        return {};
      }
      case 6: {
        TORNASOLE_TRY(index->grad_enabled, read_bool(v, "grad_enabled"));
        return {};
      }
      case 7: {
        TORNASOLE_TRY(index->backward_in_eval, read_bool(v, "backward_in_eval"));
        return {};
      }
      case 8: {
        TORNASOLE_TRY(index->grad_scale, read_optional_number(v, "grad_scale"));
        return {};
      }
      default: return check_unknown(v, 2);
    }
  }));
  *keys = {.mode_and_step = seen.has(0) && seen.has(1), .event_file = seen.has(2)};
  return {};
}

Status visit_entry(od::value value, IndexVisitor& visitor) {
  static constexpr std::array<std::string_view, 4> kKeys = {"tensorname", "start_idx", "length", "crc32c"};
  IndexVisitor::Tensor entry;
  SeenKeys seen;
  TORNASOLE_CHECK(for_each_field(value, "an entry of tensor_payload", [&](std::string_view key, od::value v) -> Status {
    switch (seen.note(kKeys, key)) {
      case 0: {
        TORNASOLE_TRY(entry.name, read_string(v, "tensorname"));
        return {};
      }
      case 1: {
        TORNASOLE_TRY(const std::int64_t offset, read_integer(v, "start_idx", 0));
        entry.offset = static_cast<std::uint64_t>(offset);
        return {};
      }
      case 2: {
        TORNASOLE_TRY(const std::int64_t length, read_integer(v, "length", 0));
        entry.length = static_cast<std::uint64_t>(length);
        return {};
      }
      case 3: {
        TORNASOLE_TRY(const std::int64_t crc, read_integer(v, "crc32c", 0));
        if (crc > std::int64_t{UINT32_MAX}) return corrupt_error("crc32c is {}, more than 32 bits", crc);
        entry.crc = static_cast<std::uint32_t>(crc);
        return {};
      }
      default: return check_unknown(v, 3);
    }
  }));
  if (!seen.has(0) || !seen.has(1) || !seen.has(2)) {
    return corrupt_error("an entry of tensor_payload has no tensorname, start_idx or length");
  }
  visitor.on_tensor(entry);
  return {};
}

Status visit_shape(od::value value, IndexVisitor& visitor) {
  static constexpr std::array<std::string_view, 3> kKeys = {"tensorname", "originalname", "shape"};
  IndexVisitor::ShapeRecord entry;
  std::array<std::int64_t, kMaxRank> extents;
  std::size_t rank = 0;
  SeenKeys seen;
  TORNASOLE_CHECK(for_each_field(value, "an entry of shape_payload", [&](std::string_view key, od::value v) -> Status {
    switch (seen.note(kKeys, key)) {
      case 0: {
        TORNASOLE_TRY(entry.name, read_string(v, "tensorname"));
        return {};
      }
      case 1: {
        TORNASOLE_TRY(entry.original_name, read_string(v, "originalname"));
        return {};
      }
      case 2:
        rank = 0;
        return for_each_item(v, "shape", [&](od::value item) -> Status {
          if (rank == kMaxRank) return corrupt_error("shape has more than {} dimensions", kMaxRank);
          TORNASOLE_TRY(extents[rank], read_integer(item, "an extent of shape", 0));
          ++rank;
          return {};
        });
      default: return check_unknown(v, 3);
    }
  }));
  if (!seen.has(0) || !seen.has(2)) return corrupt_error("an entry of shape_payload has no tensorname or no shape");
  if (!seen.has(1)) entry.original_name = entry.name;
  entry.shape = {extents.data(), rank};
  visitor.on_shape(entry);
  return {};
}

// What the walk over the top level leaves to check.
struct TopLevel {
  SeenKeys seen;
  MetaKeys meta;
  bool has_tensors = false;
  std::optional<std::int64_t> checksum;
  bool is_checksum_last = false;
};

Status read_top(od::object object, IndexVisitor& visitor, Index* index, TopLevel* top) {
  static constexpr std::array<std::string_view, 4> kKeys = {"meta", "tensor_payload", "shape_payload", "crc32c"};
  return for_each_field_of(object, "the index", [&](std::string_view key, od::value v) -> Status {
    const int place = top->seen.note(kKeys, key);
    top->is_checksum_last = place == 3;
    switch (place) {
      case 0: return read_meta(v, index, &top->meta);
      case 1:
        top->has_tensors = false;
        visitor.on_tensor_list();
        return for_each_item(v, "tensor_payload", [&](od::value item) -> Status {
          top->has_tensors = true;
          return visit_entry(item, visitor);
        });
      case 2:
        visitor.on_shape_list();
        return for_each_item(v, "shape_payload", [&](od::value item) { return visit_shape(item, visitor); });
      case 3: {
        TORNASOLE_TRY(top->checksum, read_integer(v, "crc32c", 0));
        return {};
      }
      default: return check_unknown(v, 1);
    }
  });
}

// Fills the lists of an Index.
class ListBuilder final : public IndexVisitor {
 public:
  void on_tensor_list() override { tensors.clear(); }
  void on_shape_list() override { shapes.clear(); }
  void on_tensor(const Tensor& tensor) override {
    tensors.push_back({std::string(tensor.name), tensor.offset, tensor.length, tensor.crc});
  }
  void on_shape(const ShapeRecord& record) override {
    shapes.push_back({std::string(record.name), std::string(record.original_name),
                      std::vector<std::int64_t>(record.shape.begin(), record.shape.end())});
  }

  std::vector<IndexEntry> tensors;
  std::vector<ShapeEntry> shapes;
};

Result<Index> decode_padded(od::parser& parser, simdjson::padded_string_view padded, IndexVisitor& visitor) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (padded.starts_with(kByteOrderMark)) {
    padded = simdjson::padded_string_view(padded.data() + kByteOrderMark.size(), padded.size() - kByteOrderMark.size(),
                                          padded.capacity() - kByteOrderMark.size());
  }
  od::document document;
  if (const auto error = parser.iterate(padded).get(document); error) return json_error(error, "an index");
  od::object object;
  if (const auto error = document.get_object().get(object); error) return json_error(error, "an object");

  Index index;
  TopLevel top;
  TORNASOLE_CHECK(read_top(object, visitor, &index, &top));
  // At the end there is no location left to report.
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return corrupt_error("more text follows the end of the index");
  }
  if (!top.seen.has(0)) return corrupt_error("the index has no meta");
  if (!top.meta.mode_and_step) return corrupt_error("meta has no mode or no mode_step");
  if (!top.seen.has(1) && !top.seen.has(2))
    return corrupt_error("the index has no tensor_payload and no shape_payload");
  if (top.has_tensors && !top.meta.event_file) return corrupt_error("meta has no event_file_name for its tensors");
  if (top.checksum) {
    if (!top.is_checksum_last) return corrupt_error("the key crc32c is not the last one");
    TORNASOLE_CHECK(check_file_checksum({padded.data(), padded.size()}, *top.checksum));
    index.is_verified = true;
  }
  return index;
}

}  // namespace

struct IndexDecoder::Parser {
  od::parser parser;
};

IndexDecoder::IndexDecoder() : parser_(std::make_unique<Parser>()) {}
IndexDecoder::~IndexDecoder() = default;

Result<Index> IndexDecoder::decode(Bytes& text, IndexVisitor& visitor) {
  if (text.size() > kMaxIndexBytes) {
    return corrupt_error("an index of {} bytes, more than the limit of {}", text.size(), kMaxIndexBytes);
  }
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  return decode_padded(parser_->parser, simdjson::padded_string_view(text.data(), text.size(), text.capacity()),
                       visitor);
}

Result<Index> decode_index(ByteView text) {
  if (text.size() > kMaxIndexBytes) {
    return corrupt_error("an index of {} bytes, more than the limit of {}", text.size(), kMaxIndexBytes);
  }
  const simdjson::padded_string padded(text);
  if (padded.data() == nullptr) return io_error("no memory for an index of {} bytes", text.size());
  od::parser parser;
  ListBuilder lists;
  TORNASOLE_TRY(Index index, decode_padded(parser, padded, lists));
  index.tensors = std::move(lists.tensors);
  index.shapes = std::move(lists.shapes);
  return index;
}

}  // namespace tornasole::format
