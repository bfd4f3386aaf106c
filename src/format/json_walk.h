#pragma once

// Walks over JSON text once, front to back, and reads every value in it, known or not: the parser checks the syntax of
// what it is asked for and skips the rest unseen, and a file must not be half JSON. The grammar is that of the
// reference's reader: NaN, Infinity and -Infinity are values, and 2.0 is the integer 2. Inline: a trial has millions of
// these values.

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/errors.h"
#include "base/json_number.h"

namespace tornasole::format::walk {

namespace od = simdjson::ondemand;

inline constexpr int kMaxDepth = 64;

// Below, `what` names the value in messages; all errors are kCorrupt.
Error json_error(simdjson::error_code code, std::string_view what);
// The beginning of the value as it stands in the text, for messages.
std::string shown(od::value value);
Result<std::optional<double>> read_optional_number(od::value value, std::string_view what);
// Reads a value that means nothing to us, for its syntax. `depth` is that of the object or list around it.
Status check_unknown(od::value value, int depth);

// What stands before the quote that ends the string, if it needs no unescaping: then it is the string, and is not
// copied.
inline std::optional<std::string_view> plain_string(std::string_view text) {
  const std::string_view plain = text.substr(0, text.find('"'));
  if (plain.size() == text.size() || plain.find('\\') != std::string_view::npos) return std::nullopt;
  return plain;
}

inline Result<std::string_view> read_string(od::value value, std::string_view what) {
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
    return corrupt_error("{} is {}, not a string", what, shown(value));
  } else if (error) {
    return json_error(error, what);
  }
  return text;
}

// An integer of at least `lowest` that fits int64. The parser steps over the token by itself.
inline Result<std::int64_t> read_integer(od::value value, std::string_view what, std::int64_t lowest) {
  const std::string_view token = number_token(value.raw_json_token());
  std::int64_t number = 0;
  if ((!parse_json_integer(token, &number) && !parse_whole_number(token, &number)) || number < lowest) {
    return corrupt_error("{} is {}, not an integer of at least {}", what, shown(value), lowest);
  }
  return number;
}

inline Result<bool> read_bool(od::value value, std::string_view what) {
  bool truth = false;
  if (const auto error = value.get_bool().get(truth); error) {
    return corrupt_error("{} is {}, neither true nor false", what, shown(value));
  }
  return truth;
}

// The parser has checked that a quote ends the key.
inline Result<std::string_view> read_key(od::field& field, std::string_view what) {
  const char* const raw = field.key().raw();
  const char* end = raw;
  while (*end != '"' && *end != '\\') ++end;
  if (*end == '"') return std::string_view(raw, static_cast<std::size_t>(end - raw));
  std::string_view key;
  if (const auto error = field.unescaped_key().get(key); error) return json_error(error, what);
  return key;
}

template <typename OnItem>
Status for_each_item(od::value value, std::string_view what, OnItem on_item) {
  od::array array;
  if (const auto error = value.get_array().get(array); error == simdjson::INCORRECT_TYPE) {
    return corrupt_error("{} is {}, not a list", what, shown(value));
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
    return corrupt_error("{} is {}, not an object", what, shown(value));
  } else if (error) {
    return json_error(error, what);
  }
  return for_each_field_of(object, what, on_field);
}

}  // namespace tornasole::format::walk
