#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/errors.h"

namespace tornasole::config {
namespace {

Error not_allowed(const Json& value, std::string_view allowed) {
  return invalid_error("{} is not allowed; allowed: {}", value.to_message(), allowed);
}

std::string in_words(IntegerRange range) {
  if (range.max != IntegerRange{}.max) return fmt::format("an integer from {} to {}", range.min, range.max);
  if (range.min != IntegerRange{}.min) return fmt::format("an integer of at least {}", range.min);
  return "an integer";
}

template <typename T>
std::optional<T> parse_number(std::string_view text) noexcept {
  text = trim(text);
  // from_chars knows no plus sign, but people and Python do.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> as_integer(const Json& value) noexcept {
  if (const auto* number = value.as_int()) return *number;
  if (const auto* text = value.as_string()) return parse_number<std::int64_t>(*text);
  if (const auto* number = value.as_double()) {
    // Beyond 2^53 a double no longer says which integer was meant.
    constexpr double kExact = 9007199254740992.0;
    if (std::abs(*number) <= kExact && std::trunc(*number) == *number) return static_cast<std::int64_t>(*number);
  }
  return std::nullopt;
}

}  // namespace

Result<std::int64_t> read_integer(const Json& value, IntegerRange range) {
  const auto number = as_integer(value);
  if (!number || *number < range.min || *number > range.max) return not_allowed(value, in_words(range));
  return *number;
}

Result<double> read_number(const Json& value, double min, double max) {
  std::optional<double> number;
  if (const auto* integer = value.as_int()) number = static_cast<double>(*integer);
  if (const auto* real = value.as_double()) number = *real;
  if (const auto* text = value.as_string()) number = parse_number<double>(*text);
  // Written so that NaN, which compares false with everything, is refused.
  if (!number || !(*number >= min && *number <= max)) {
    return not_allowed(value, fmt::format("a number from {} to {}", min, max));
  }
  return *number;
}

Result<bool> read_bool(const Json& value) {
  if (const bool* truth = value.as_bool()) return *truth;
  if (const auto* number = value.as_int(); number != nullptr && (*number == 0 || *number == 1)) return *number == 1;
  if (const auto* text = value.as_string()) {
    const std::string_view word = trim(*text);
    if (word == "true" || word == "True" || word == "1") return true;
    if (word == "false" || word == "False" || word == "0") return false;
  }
  return not_allowed(value, "true, false, 1, 0, or the texts true, false, True, False, 1, 0");
}

Result<std::string> read_text(const Json& value) {
  const auto* text = value.as_string();
  if (text == nullptr) return not_allowed(value, "a text");
  if (text->empty()) return not_allowed(value, "a text that is not empty");
  if (text->find('\0') != std::string::npos) return not_allowed(value, "a text without NUL characters");
  return *text;
}

Result<std::size_t> read_choice(const Json& value, std::span<const std::string_view> allowed) {
  if (const auto* text = value.as_string()) {
    const auto found = std::find(allowed.begin(), allowed.end(), trim(*text));
    if (found != allowed.end()) return static_cast<std::size_t>(found - allowed.begin());
  }
  return not_allowed(value, join(allowed));
}

Result<std::vector<std::int64_t>> read_integers(const Json& value) {
  constexpr std::string_view kAllowed = "an integer, a comma list of integers, or an array of them";
  std::vector<std::int64_t> numbers;
  const auto add = [&](const Json& item) {
    const auto number = as_integer(item);
    if (number) numbers.push_back(*number);
    return number.has_value();
  };
  if (const auto* items = value.as_array()) {
    for (const Json& item : *items) {
      if (!add(item)) return invalid_error("the item {} is not allowed; allowed: {}", item.to_message(), kAllowed);
    }
  } else if (const auto* text = value.as_string()) {
    for (std::string& item : split_list(*text)) {
      const Json number(std::move(item), value.line());
      if (!add(number)) return invalid_error("the item {} is not allowed; allowed: {}", number.to_message(), kAllowed);
    }
  } else if (!add(value)) {
    return not_allowed(value, kAllowed);
  }
  return numbers;
}

Result<std::vector<std::string>> read_texts(const Json& value) {
  constexpr std::string_view kAllowed = "a comma list in one text, or an array of texts";
  if (const auto* text = value.as_string()) return split_list(*text);
  const auto* items = value.as_array();
  if (items == nullptr) return not_allowed(value, kAllowed);
  std::vector<std::string> texts;
  for (const Json& item : *items) {
    const auto* text = item.as_string();
    if (text == nullptr) return invalid_error("the item {} is not allowed; allowed: {}", item.to_message(), kAllowed);
    texts.push_back(*text);
  }
  return texts;
}

std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = trim(text.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string join(std::span<const std::string_view> items) { return fmt::format("{}", fmt::join(items, ", ")); }

}  // namespace tornasole::config
