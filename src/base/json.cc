#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "base/errors.h"
#include "base/json_number.h"
#include "base/utf8.h"

namespace tornasole {
namespace {

// A character iterator that counts lines, shared by its copies, so that the handler below knows where the parser is.
struct Cursor {
  const char* at;
  int line = 1;
};
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(Cursor* cursor, const char* at) : cursor_(cursor), at_(at) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++cursor_->line;
    cursor_->at = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  Cursor* cursor_;
  const char* at_;
};

// A number that the library cannot read: its place in the text, and what it is.
struct NonFinite {
  const char* at;
  double value;
};

bool is_too_large(std::string_view number) {
  double value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc::result_out_of_range) {
    return false;
  }
  return std::isinf(std::strtod(std::string(number).c_str(), nullptr));  // else it is too small
}

// Writes a zero over every number outside of strings that the library cannot read, blanks behind it, so that places in
// the text stay what they are.
std::vector<NonFinite> take_non_finite(std::string* text) {
  std::vector<NonFinite> taken;
  bool in_string = false;
  for (std::size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string || (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-')) continue;
    const std::size_t end = std::min(text->find_first_of(" \t\r\n,]}:\"", i), text->size());
    const std::string_view token = std::string_view(*text).substr(i, end - i);
    double value = 0;
    if (token == "NaN") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (token == "Infinity" || token == "-Infinity") {
      value = token.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
    } else if (!is_json_number(token) || !is_too_large(token)) {
      i = end - 1;
      continue;
    } else {
      value = token.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
    }
    taken.push_back({text->data() + i, value});
    text->replace(i, end - i, end - i, ' ');
    (*text)[i] = '0';
    i = end - 1;
  }
  return taken;
}

// Builds a Json from the parser's events. The depth is counted here: the parser itself does not recurse.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const Cursor& cursor, int max_depth, std::span<const NonFinite> non_finite)
      : cursor_(cursor), max_depth_(max_depth), non_finite_(non_finite) {}

  bool null() override { return add(Json(std::monostate{}, cursor_.line)); }
  bool boolean(bool value) override { return add(Json(value, cursor_.line)); }
  bool number_integer(number_integer_t value) override { return add(Json(std::int64_t{value}, number_line())); }
  bool number_unsigned(number_unsigned_t value) override {
    // Numbers come in the order of the text, and the cursor is behind the one that is reported.
    if (!non_finite_.empty() && non_finite_.front().at < cursor_.at) {
      const double real = non_finite_.front().value;
      non_finite_ = non_finite_.subspan(1);
      return add(Json(real, number_line()));
    }
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return number_integer(static_cast<number_integer_t>(value));
    return add(Json(static_cast<double>(value), number_line()));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(Json(value, number_line())); }
  bool string(string_t& value) override { return add(Json(std::move(value), cursor_.line)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(Json(Json::Object{}, cursor_.line)); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json(Json::Array{}, cursor_.line)); }
  bool end_array() override { return close(); }
  bool key(string_t& text) override {
    keys_.back() = std::move(text);
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& token, const nlohmann::json::exception& what) override {
    constexpr int kNumberOutOfRange = 406;
    error_ = what.id == kNumberOutOfRange ? too_large(token) : what.what();
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  // The parser reads one character past a number before it reports it.
  int number_line() const { return cursor_.at[-1] == '\n' ? cursor_.line - 1 : cursor_.line; }

  // The library says neither the line nor the key, and repeats all digits of the number.
  std::string too_large(const std::string& number) const {
    constexpr std::size_t kMaxShown = 40;
    const bool is_member = !open_.empty() && open_.back().as_object() != nullptr;
    return fmt::format("line {}: {}the number {}{} is too large for 64 bits", number_line(),
                       is_member ? printable(keys_.back()) + ": " : "", number.substr(0, kMaxShown),
                       number.size() > kMaxShown ? "..." : "");
  }

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = open_.back().as_array()) {
      array->push_back(std::move(value));
    } else {
      open_.back().as_object()->push_back({std::move(keys_.back()), std::move(value)});
    }
    return true;
  }
  bool open(Json container) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      error_ = fmt::format("nested deeper than {} levels at line {}", max_depth_, cursor_.line);
      return false;
    }
    open_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(done));
  }

  const Cursor& cursor_;
  int max_depth_;
  std::span<const NonFinite> non_finite_;  // those still to come
  std::vector<Json> open_;
  std::vector<std::string> keys_;
  Json root_;
  std::string error_;
};

// The library's text starts with "[json.exception.parse_error.101] parse error at line 1, column 5: ".
std::string strip_library_prefix(const std::string& text) {
  const std::size_t at = text.find("line ");
  return text.rfind("[json", 0) == 0 && at != std::string::npos ? text.substr(at) : text;
}

}  // namespace

const Json* Json::find(std::string_view key) const noexcept {
  const Object* object = as_object();
  if (object == nullptr) return nullptr;
  const auto found = std::find_if(object->rbegin(), object->rend(), [&](const Member& m) { return m.key == key; });
  return found == object->rend() ? nullptr : &found->value;
}

std::string_view Json::type_name() const noexcept {
  constexpr std::array<std::string_view, 7> kNames = {"null",     "true or false", "a number", "a number",
                                                      "a string", "a list",        "an object"};
  return kNames[value_.index()];
}

std::string Json::to_message() const {
  constexpr std::size_t kMaxLength = 80;
  if (is_null()) return "null";
  if (const bool* truth = as_bool()) return *truth ? "true" : "false";
  if (const auto* number = as_int()) return fmt::format("{}", *number);
  if (const auto* number = as_double()) return fmt::format("{}", *number);
  std::string text;
  if (const auto* string = as_string()) {
    append_json_string(&text, *string);
  } else if (const auto* array = as_array()) {
    text = "[";
    for (const Json& item : *array) {
      if (text.size() > 1) text += ", ";
      text += item.to_message();
      if (text.size() > kMaxLength) break;
    }
    text += "]";
  } else {
    text = "{...}";
  }
  if (text.size() > kMaxLength) text = text.substr(0, kMaxLength) + "...";
  return text;
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return corrupt_error("{} bytes of JSON, more than the limit of {}", text.size(), limits.max_bytes);
  }
  // The library takes a zero byte for the end of the text, and would overlook what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return corrupt_error("not JSON: a zero byte at offset {}", zero);
  }
  std::string finite;
  std::vector<NonFinite> non_finite;
  if (limits.allow_non_finite) {
    finite = text;
    non_finite = take_non_finite(&finite);
    text = finite;
  }
  Cursor cursor{.at = text.data()};
  Builder builder(cursor, limits.max_depth, non_finite);
  const CountingIterator begin(&cursor, text.data());
  const CountingIterator end(&cursor, text.data() + text.size());
  if (!nlohmann::json::sax_parse(begin, end, &builder)) {
    return corrupt_error("not JSON: {}", strip_library_prefix(builder.error()));
  }
  return builder.take();
}

Result<Json> parse_lenient_json(std::string_view text, const JsonLimits& limits, std::vector<std::string>* warnings) {
  std::string clean(text);
  if (clean.rfind("\xEF\xBB\xBF", 0) == 0) {
    // Blanks keep every later column where an editor shows it, give or take the invisible mark itself.
    clean.erase(0, 3);
    warnings->emplace_back("line 1: byte-order mark ignored");
  }
  int line = 1;
  bool in_string = false;
  std::size_t comma = std::string::npos;
  int comma_line = 0;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    if ((c == ']' || c == '}') && comma != std::string::npos) {
      clean[comma] = ' ';
      warnings->push_back(fmt::format("line {}: trailing comma ignored", comma_line));
    }
    comma = c == ',' ? i : std::string::npos;
    comma_line = line;
    in_string = c == '"';
  }
  return parse_json(clean, limits);
}

void append_json_string(std::string* out, std::string_view text) {
  static constexpr std::array<char, 17> kHex = {"0123456789abcdef"};
  const auto append_unit = [out](std::uint32_t unit) {
    *out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out->push_back(kHex[(unit >> shift) & 0xFU]);
  };
  std::string repaired;
  const bool is_ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
  if (!is_ascii && !is_valid_utf8(text)) {
    repaired = replace_bad_utf8(text);
    text = repaired;
  }
  out->push_back('"');
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    switch (c) {
      case '"': *out += "\\\""; continue;
      case '\\': *out += "\\\\"; continue;
      case '\n': *out += "\\n"; continue;
      case '\r': *out += "\\r"; continue;
      case '\t': *out += "\\t"; continue;
      case '\f': *out += "\\f"; continue;
      case '\b': *out += "\\b"; continue;
      default: break;
    }
    if (c >= 0x20 && c < 0x7F) {
      out->push_back(static_cast<char>(c));
      continue;
    }
    if (c < 0x80) {
      // Python's writer leaves DEL as it is.
      if (c == 0x7F) {
        out->push_back('\x7F');
      } else {
        append_unit(c);
      }
      continue;
    }
    const auto next = [&](std::size_t k) { return static_cast<unsigned char>(text[i + k]) & 0x3FU; };
    std::uint32_t code_point = 0;
    if (c < 0xE0) {
      code_point = ((c & 0x1FU) << 6) | next(1);
      i += 1;
    } else if (c < 0xF0) {
      code_point = ((c & 0x0FU) << 12) | (next(1) << 6) | next(2);
      i += 2;
    } else {
      code_point = ((c & 0x07U) << 18) | (next(1) << 12) | (next(2) << 6) | next(3);
      i += 3;
    }
    if (code_point < 0x10000) {
      append_unit(code_point);
    } else {
      append_unit(0xD800 + ((code_point - 0x10000) >> 10));
      append_unit(0xDC00 + ((code_point - 0x10000) & 0x3FFU));
    }
  }
  out->push_back('"');
}

void JsonWriter::separate() {
  if (needs_comma_) out_ += ", ";
  needs_comma_ = true;
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  out_.push_back('{');
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::end_object() {
  out_.push_back('}');
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::begin_array() {
  separate();
  out_.push_back('[');
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::end_array() {
  out_.push_back(']');
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(&out_, name);
  out_ += ": ";
  needs_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(&out_, text);
  return *this;
}
JsonWriter& JsonWriter::value(std::int64_t number) {
  separate();
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out_.append(digits.data(), end);
  return *this;
}
JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  // fmt prints 1.0 as "1" without a type; Python's text always shows that it is no integer.
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  out_ += text;
  return *this;
}
JsonWriter& JsonWriter::value(bool truth) {
  separate();
  out_ += truth ? "true" : "false";
  return *this;
}
JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}
JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

}  // namespace tornasole
