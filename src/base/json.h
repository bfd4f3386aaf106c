#pragma once

// JSON: a small document with the line of every value, for configuration and the modest files of a trial; and a
// writer that produces the text style of the format (", " and ": " between items, ASCII only, no line breaks).

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tornasole/result.h"

namespace tornasole {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // in the order of the text; a repeated key appears twice, the last one counts

  Json() = default;
  template <typename T>
  Json(T value, int line) : value_(std::move(value)), line_(line) {}

  bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  // Null when the value is of another type.
  const bool* as_bool() const noexcept { return std::get_if<bool>(&value_); }
  const std::int64_t* as_int() const noexcept { return std::get_if<std::int64_t>(&value_); }
  const double* as_double() const noexcept {
    return std::get_if<double>(&value_);
  }  // written with . or e, or too large
  const std::string* as_string() const noexcept { return std::get_if<std::string>(&value_); }
  const Array* as_array() const noexcept { return std::get_if<Array>(&value_); }
  const Object* as_object() const noexcept { return std::get_if<Object>(&value_); }
  Array* as_array() noexcept { return std::get_if<Array>(&value_); }
  Object* as_object() noexcept { return std::get_if<Object>(&value_); }

  // The member of an object; null if this is no object or has no such key.
  const Json* find(std::string_view key) const noexcept;
  int line() const noexcept { return line_; }  // of the text, counted from 1
  // "null", "true or false", "a number", "a string", "a list", "an object".
  std::string_view type_name() const noexcept;
  // The value as JSON text, cut to a length fit for a message.
  std::string to_message() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
  int line_ = 0;
};

struct Json::Member {
  std::string key;
  Json value;
};

struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;
  int max_depth = 64;
  // For files that Python may have written: NaN, Infinity and -Infinity are numbers, and one too large for a double is
  // an infinity. Otherwise all of these are errors.
  bool allow_non_finite = false;
};

// Errors are kCorrupt and say line and column. Text that is not UTF-8 is an error.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});
// The same for text people write: a byte-order mark and commas before ] or } are tolerated; each adds a warning
// ("line 7: trailing comma ignored").
Result<Json> parse_lenient_json(std::string_view text, const JsonLimits& limits, std::vector<std::string>* warnings);

// Appends to a string. The caller keeps the order of calls correct: key, then value, inside an object.
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(*out) {}
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint32_t number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(double number);  // shortest text that reads back equal, as Python prints it; not finite: null
  JsonWriter& value(bool truth);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // a finished value

 private:
  void separate();
  std::string& out_;
  bool needs_comma_ = false;
};

// "text" in quotes, everything outside printable ASCII escaped; bad UTF-8 becomes U+FFFD.
void append_json_string(std::string* out, std::string_view text);

}  // namespace tornasole
