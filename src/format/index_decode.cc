// Decoding walks the text once, front to back, and reads every value in it, known or not: the parser checks the syntax
// of what it is asked for and skips the rest unseen, and a file must not be half JSON. Keys we know may not come twice.

#include <simdjson.h>

#include <array>
#include <limits>
#include <optional>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/event_limits.h"
#include "format/file_checksum.h"
#include "format/index.h"
#include "format/json_number.h"

namespace tornasole::format {
namespace {

namespace od = simdjson::ondemand;

constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;
constexpr int kMaxDepth = 64;

Error json_error(simdjson::error_code code, std::string_view what) {
  return corrupt_error("not JSON where {} is expected: {}", what, simdjson::error_message(code));
}

// What stands before the quote that ends the string, if it needs no unescaping: then it is the string, and is not
// copied.
std::optional<std::string_view> plain_string(std::string_view text) {
  const std::string_view plain = text.substr(0, text.find('"'));
  if (plain.size() == text.size() || plain.find('\\') != std::string_view::npos) return std::nullopt;
  return plain;
}

Result<std::string_view> read_string(od::value value, std::string_view what) {
  std::string_view text = value.raw_json_token();
  if (text.starts_with('"')) {
    if (const auto plain = plain_string(text.substr(1))) {
      // The parser has to step over it here: what it steps over by itself may also be a key, which is no value.
      od::raw_json_string stepped_over;
      if (const auto error = value.get_raw_json_string().get(stepped_over); error) return json_error(error, what);
      return *plain;
    }
  }
  if (const auto error = value.get_string().get(text); error == simdjson::INCORRECT_TYPE) {
    return corrupt_error("{} is not a string", what);
  } else if (error) {
    return json_error(error, what);
  }
  return text;
}

// An integer of at least `lowest` that fits int64. The parser steps over the token by itself.
Result<std::int64_t> read_integer(od::value value, std::string_view what, std::int64_t lowest) {
  const std::string_view token = number_token(value.raw_json_token());
  std::int64_t number = 0;
  if (!parse_json_integer(token, &number) || number < lowest) {
    return corrupt_error("{} is {}, not an integer of at least {}", what, printable(token.substr(0, 40)), lowest);
  }
  return number;
}

Result<bool> read_bool(od::value value, std::string_view what) {
  bool truth = false;
  if (const auto error = value.get_bool().get(truth); error) {
    return corrupt_error("{} is neither true nor false", what);
  }
  return truth;
}

Result<std::optional<double>> read_optional_number(od::value value, std::string_view what) {
  bool is_null = false;
  if (const auto error = value.is_null().get(is_null); error) return json_error(error, what);
  if (is_null) return std::optional<double>();
  double number = 0;
  if (const auto error = value.get_double().get(number); error) return corrupt_error("{} is not a number", what);
  return std::optional<double>(number);
}

template <typename OnItem>
Status for_each_item(od::value value, std::string_view what, OnItem on_item) {
  od::array array;
  if (const auto error = value.get_array().get(array); error == simdjson::INCORRECT_TYPE) {
    return corrupt_error("{} is not a list", what);
  } else if (error) {
    return json_error(error, what);
  }
  for (auto item : array) {
    od::value element;
    if (const auto error = item.get(element); error) return json_error(error, what);
    TORNASOLE_CHECK(on_item(element));
  }
  return {};
}

// The parser has checked that a quote ends the key.
Result<std::string_view> read_key(od::field& field, std::string_view what) {
  const char* const raw = field.key().raw();
  const char* end = raw;
  while (*end != '"' && *end != '\\') ++end;
  if (*end == '"') return std::string_view(raw, static_cast<std::size_t>(end - raw));
  std::string_view key;
  if (const auto error = field.unescaped_key().get(key); error) return json_error(error, what);
  return key;
}

template <typename OnField>
Status for_each_field_of(od::object object, std::string_view what, OnField on_field) {
  for (auto item : object) {
    od::field field;
    if (const auto error = std::move(item).get(field); error) return json_error(error, what);
    TORNASOLE_TRY(const std::string_view key, read_key(field, what));
    TORNASOLE_CHECK(on_field(key, field.value()));
  }
  return {};
}

template <typename OnField>
Status for_each_field(od::value value, std::string_view what, OnField on_field) {
  od::object object;
  if (const auto error = value.get_object().get(object); error == simdjson::INCORRECT_TYPE) {
    return corrupt_error("{} is not an object", what);
  } else if (error) {
    return json_error(error, what);
  }
  return for_each_field_of(object, what, on_field);
}

// Reads a value that means nothing to us, for its syntax.
Status check_unknown(od::value value, int depth) {
  constexpr std::string_view kWhat = "the value of an unknown key";
  if (depth >= kMaxDepth) return corrupt_error("nested deeper than {} levels", kMaxDepth);
  od::json_type type{};
  if (const auto error = value.type().get(type); error) return json_error(error, kWhat);
  switch (type) {
    case od::json_type::object:
      return for_each_field(value, kWhat, [&](std::string_view, od::value v) { return check_unknown(v, depth + 1); });
    case od::json_type::array:
      return for_each_item(value, kWhat, [&](od::value v) { return check_unknown(v, depth + 1); });
    case od::json_type::string: {
      TORNASOLE_CHECK(read_string(value, kWhat));
      return {};
    }
    case od::json_type::boolean: {
      TORNASOLE_CHECK(read_bool(value, kWhat));
      return {};
    }
    case od::json_type::null: {
      bool is_null = false;
      if (const auto error = value.is_null().get(is_null); error || !is_null) {
        return corrupt_error("not JSON where {} is expected: neither null nor a number", kWhat);
      }
      return {};
    }
    case od::json_type::number: {
      // Any size of number is good JSON, also one that fits no type of ours.
      const std::string_view token = number_token(value.raw_json_token());
      if (!is_json_number(token)) return corrupt_error("{} is no number", printable(token.substr(0, 40)));
      return {};
    }
  }
  return corrupt_error("not JSON where {} is expected", kWhat);
}

// Which of the known keys of one object were seen.
class SeenKeys {
 public:
  // The place of `key` in `known`, or -1; an error when it comes a second time.
  template <std::size_t N>
  Result<int> note(const std::array<std::string_view, N>& known, std::string_view key) {
    for (std::size_t i = 0; i < N; ++i) {
      if (known[i] != key) continue;
      if (has(static_cast<int>(i))) return corrupt_error("the key \"{}\" comes twice in one object", key);
      seen_ |= 1U << i;
      return static_cast<int>(i);
    }
    return -1;
  }
  bool has(int place) const noexcept { return ((seen_ >> static_cast<unsigned>(place)) & 1U) != 0; }

 private:
  unsigned seen_ = 0;
};

// An empty name is good: it says that no file holds the values. Index files made by hand have it.
Status check_event_file(std::string_view path) {
  bool climbs = path.starts_with('/') || path.find('\0') != std::string_view::npos;
  for (std::size_t at = 0; !climbs && at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    climbs = path.substr(at, slash - at) == "..";
    at = slash + 1;
  }
  if (!climbs) return {};
  return corrupt_error("event_file_name is \"{}\", which does not lie inside the trial",
                       printable(path.substr(0, 200)));
}

Status read_meta(od::value value, Index* index, bool* names_event_file) {
  static constexpr std::array<std::string_view, 9> kKeys = {"mode",         "mode_step",        "event_file_name",
                                                            "partial",      "optimizer_step",   "training",
                                                            "grad_enabled", "backward_in_eval", "grad_scale"};
  SeenKeys seen;
  TORNASOLE_CHECK(for_each_field(value, "meta", [&](std::string_view key, od::value v) -> Status {
    TORNASOLE_TRY(const int place, seen.note(kKeys, key));
    switch (place) {
      case 0: {
        TORNASOLE_TRY(const std::string_view name, read_string(v, "mode"));
        for (const Mode mode : kAllModes) {
          if (mode_name(mode) != name) continue;
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
        TORNASOLE_TRY(index->event_file, read_string(v, "event_file_name"));
        return check_event_file(index->event_file);
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
  if (!seen.has(0) || !seen.has(1)) return corrupt_error("meta has no mode or no mode_step");
  *names_event_file = seen.has(2);
  return {};
}

Status visit_entry(od::value value, IndexVisitor& visitor) {
  static constexpr std::array<std::string_view, 4> kKeys = {"tensorname", "start_idx", "length", "crc32c"};
  IndexVisitor::Tensor entry;
  SeenKeys seen;
  TORNASOLE_CHECK(for_each_field(value, "an entry of tensor_payload", [&](std::string_view key, od::value v) -> Status {
    TORNASOLE_TRY(const int place, seen.note(kKeys, key));
    switch (place) {
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
    TORNASOLE_TRY(const int place, seen.note(kKeys, key));
    switch (place) {
      case 0: {
        TORNASOLE_TRY(entry.name, read_string(v, "tensorname"));
        return {};
      }
      case 1: {
        TORNASOLE_TRY(entry.original_name, read_string(v, "originalname"));
        return {};
      }
      case 2:
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
  bool has_tensors = false;
  bool names_event_file = false;
  std::optional<std::int64_t> checksum;
  bool is_checksum_last = false;
};

Status read_top(od::object object, IndexVisitor& visitor, Index* index, TopLevel* top) {
  static constexpr std::array<std::string_view, 4> kKeys = {"meta", "tensor_payload", "shape_payload", "crc32c"};
  return for_each_field_of(object, "the index", [&](std::string_view key, od::value v) -> Status {
    TORNASOLE_TRY(const int place, top->seen.note(kKeys, key));
    top->is_checksum_last = place == 3;
    switch (place) {
      case 0: return read_meta(v, index, &top->names_event_file);
      case 1:
        return for_each_item(v, "tensor_payload", [&](od::value item) -> Status {
          top->has_tensors = true;
          return visit_entry(item, visitor);
        });
      case 2: return for_each_item(v, "shape_payload", [&](od::value item) { return visit_shape(item, visitor); });
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
  if (!top.seen.has(1) && !top.seen.has(2))
    return corrupt_error("the index has no tensor_payload and no shape_payload");
  if (top.has_tensors && !top.names_event_file) return corrupt_error("meta has no event_file_name for its tensors");
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
