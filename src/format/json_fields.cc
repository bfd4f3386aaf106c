#include "format/json_fields.h"

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "base/utf8.h"

namespace tornasole::format {
namespace {

std::optional<std::int64_t> integer_of_text(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  // A sign, then digits with single underscores between them.
  const bool has_plus = text.starts_with('+');
  if (has_plus) text.remove_prefix(1);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_between = i > 0 && i + 1 < text.size() && text[i - 1] != '_' && text[i - 1] != '-';
    if (text[i] != '_') {
      digits += text[i];
    } else if (!is_between) {
      return std::nullopt;
    }
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || (has_plus && digits.starts_with('-'))) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::int64_t> integer_of(const Json& json) {
  if (const std::int64_t* integer = json.as_int()) return *integer;
  if (const bool* truth = json.as_bool()) return *truth ? 1 : 0;
  if (const std::string* text = json.as_string()) return integer_of_text(*text);
  const double* real = json.as_double();
  // 2^63 is a double, the largest int64 is none. NaN fails both comparisons.
  if (real == nullptr || !(*real >= -0x1p63 && *real < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

}  // namespace

Result<JsonFields> JsonFields::of(const Json& json, std::string_view what) {
  if (json.as_object() == nullptr) return corrupt_error("{} is {}, not an object", what, json.type_name());
  return JsonFields(&json, what);
}

const Json* JsonFields::present(std::string_view key) const noexcept {
  const Json* found = object_->find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

Error JsonFields::wrong_type(std::string_view key, const Json& found, std::string_view wanted) const {
  return corrupt_error("\"{}\" of {} is {}, not {}", key, what_, printable(found.to_message()), wanted);
}

Status JsonFields::take(std::string_view key, const Json& found, std::optional<std::int64_t> value, Bounds bounds,
                        std::int64_t* number) const {
  if (!value) return wrong_type(key, found, "an integer");
  if (*value < bounds.lowest || *value > bounds.highest) {
    return corrupt_error("\"{}\" of {} is {}, not between {} and {}", key, what_, printable(found.to_message()),
                         bounds.lowest, bounds.highest);
  }
  *number = *value;
  return {};
}

Status JsonFields::read(std::string_view key, std::int64_t* number, Bounds bounds) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const std::int64_t* value = found->as_int();
  return take(key, *found, value == nullptr ? std::nullopt : std::optional(*value), bounds, number);
}

Status JsonFields::read_converted(std::string_view key, std::int64_t* number, Bounds bounds) const {
  const Json* found = present(key);
  return found == nullptr ? Status() : take(key, *found, integer_of(*found), bounds, number);
}

Status JsonFields::read(std::string_view key, std::optional<std::int64_t>* number) const {
  if (present(key) == nullptr) return {};
  std::int64_t value = 0;
  TORNASOLE_CHECK(read(key, &value, Bounds{}));
  *number = value;
  return {};
}

Status JsonFields::read(std::string_view key, double* number) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  if (const std::int64_t* integer = found->as_int()) {
    *number = static_cast<double>(*integer);
  } else if (const double* value = found->as_double()) {
    *number = *value;
  } else {
    return wrong_type(key, *found, "a number");
  }
  return {};
}

Status JsonFields::read(std::string_view key, bool* truth) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const bool* value = found->as_bool();
  if (value == nullptr) return wrong_type(key, *found, "true or false");
  *truth = *value;
  return {};
}

Status JsonFields::read(std::string_view key, std::string* text) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const std::string* value = found->as_string();
  if (value == nullptr) return wrong_type(key, *found, "a string");
  *text = *value;
  return {};
}

Status JsonFields::read(std::string_view key, std::vector<std::string>* texts) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const Json::Array* list = found->as_array();
  if (list == nullptr) return wrong_type(key, *found, "a list of strings");
  texts->clear();
  texts->reserve(list->size());
  for (const Json& item : *list) {
    const std::string* text = item.as_string();
    if (text == nullptr) return wrong_type(key, *found, "a list of strings");
    texts->push_back(*text);
  }
  return {};
}

Status JsonFields::read(std::string_view key, std::vector<std::int64_t>* numbers) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const Json::Array* list = found->as_array();
  if (list == nullptr) return wrong_type(key, *found, "a list of integers");
  numbers->clear();
  numbers->reserve(list->size());
  for (const Json& item : *list) {
    const std::int64_t* number = item.as_int();
    if (number == nullptr) return wrong_type(key, *found, "a list of integers");
    numbers->push_back(*number);
  }
  return {};
}

Status JsonFields::read(std::string_view key, std::map<std::string, std::int64_t>* counts) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const Json::Object* object = found->as_object();
  if (object == nullptr) return wrong_type(key, *found, "an object of counts");
  counts->clear();
  for (const auto& [name, value] : *object) {
    const std::int64_t* count = value.as_int();
    if (count == nullptr || *count < 0) return wrong_type(key, value, "a count from 0 on");
    (*counts)[name] = *count;
  }
  return {};
}

Status JsonFields::read(std::string_view key, std::map<std::string, std::string>* texts) const {
  const Json* found = present(key);
  if (found == nullptr) return {};
  const Json::Object* object = found->as_object();
  if (object == nullptr) return wrong_type(key, *found, "an object of strings");
  texts->clear();
  for (const auto& [name, value] : *object) {
    const std::string* text = value.as_string();
    if (text == nullptr) return wrong_type(key, value, "a string");
    (*texts)[name] = *text;
  }
  return {};
}

Status JsonFields::require(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (present(key) == nullptr) return corrupt_error("{} has no \"{}\"", what_, key);
  }
  return {};
}

Status check_item_count(ByteView text) {
  const auto items =
      static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return c == ',' || c == '[' || c == '{'; }));
  if (items <= kMaxFileItems) return {};
  return corrupt_error("the file has {} items, more than the limit of {}", items, kMaxFileItems);
}

Result<Json> parse_small_file(ByteView text, std::string_view what) {
  if (text.size() > kMaxSmallFileBytes) {
    return corrupt_error("{} has {} bytes, more than the limit of {}", what, text.size(), kMaxSmallFileBytes);
  }
  auto json = parse_json(text);
  if (!json.ok()) return corrupt_error("{} is {}", what, json.error().message);
  return json;
}

std::optional<Mode> parse_mode_name(std::string_view name) noexcept {
  for (const Mode mode : kAllModes) {
    if (mode_name(mode) == name) return mode;
  }
  return std::nullopt;
}

}  // namespace tornasole::format
