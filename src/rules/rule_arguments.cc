#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "tornasole/rule.h"

namespace tornasole {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1);
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (const std::string_view item = trim(text.substr(0, comma)); !item.empty()) items.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

// As Python's float, infinities included.
std::optional<double> to_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::nullopt;
  return number;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  const auto number = to_number(text);  // 500.0 is an integer too
  constexpr double kLargest = 9e15;
  if (!number || !(std::fabs(*number) <= kLargest) || std::floor(*number) != *number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> to_flag(std::string_view text) {
  text = trim(text);
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  return std::nullopt;
}

std::string_view allowed_text(ParameterType type) {
  switch (type) {
    case ParameterType::kText: return "a text";
    case ParameterType::kList: return "a list separated by commas";
    case ParameterType::kNumber: return "a number";
    case ParameterType::kNumbers: return "numbers separated by commas";
    case ParameterType::kInteger: return "an integer";
    case ParameterType::kFlag: return "True, true, False or false";
  }
  return "a text";
}

bool is_of_type(ParameterType type, std::string_view text) {
  switch (type) {
    case ParameterType::kText:
    case ParameterType::kList: return true;
    case ParameterType::kNumber: return to_number(text).has_value();
    case ParameterType::kNumbers:
      return std::ranges::all_of(split(text), [](const std::string& item) { return to_number(item).has_value(); });
    case ParameterType::kInteger: return to_integer(text).has_value();
    case ParameterType::kFlag: return to_flag(text).has_value();
  }
  return false;
}

std::string names_of(std::span<const Parameter> parameters) {
  std::string names;
  for (const Parameter& parameter : parameters) {
    if (!names.empty()) names += ", ";
    names += parameter.name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace

Result<RuleArguments> RuleArguments::make(std::string_view rule, std::span<const Parameter> parameters,
                                          const std::map<std::string, std::string>& given) {
  for (const auto& [name, text] : given) {
    if (std::ranges::find(parameters, name, &Parameter::name) == parameters.end()) {
      return invalid_error("rule {}: no parameter \"{}\"; it has: {}", rule, printable(name), names_of(parameters));
    }
  }
  RuleArguments arguments;
  for (const Parameter& parameter : parameters) {
    Argument argument{.name = std::string(parameter.name), .text = std::string(parameter.default_text)};
    if (const auto found = given.find(argument.name); found != given.end() && !trim(found->second).empty()) {
      argument.text = found->second;
      argument.is_given = true;
      if (!is_of_type(parameter.type, argument.text)) {
        return invalid_error("rule {}: {} is \"{}\"; it must be {}", rule, parameter.name, printable(argument.text),
                             allowed_text(parameter.type));
      }
    }
    arguments.arguments_.push_back(std::move(argument));
  }
  return arguments;
}

std::string_view RuleArguments::text(std::string_view name) const noexcept {
  const auto found = std::ranges::find(arguments_, name, &Argument::name);
  return found == arguments_.end() ? std::string_view() : std::string_view(found->text);
}

bool RuleArguments::is_given(std::string_view name) const noexcept {
  const auto found = std::ranges::find(arguments_, name, &Argument::name);
  return found != arguments_.end() && found->is_given;
}

double RuleArguments::number(std::string_view name) const noexcept { return to_number(text(name)).value_or(NAN); }
std::int64_t RuleArguments::integer(std::string_view name) const noexcept { return to_integer(text(name)).value_or(0); }
bool RuleArguments::flag(std::string_view name) const noexcept { return to_flag(text(name)).value_or(false); }
std::vector<std::string> RuleArguments::list(std::string_view name) const { return split(text(name)); }

std::vector<double> RuleArguments::numbers(std::string_view name) const {
  std::vector<double> numbers;
  for (const std::string& item : split(text(name))) numbers.push_back(to_number(item).value_or(NAN));
  return numbers;
}

std::string RuleArguments::to_lines() const {
  std::string lines;
  for (const Argument& argument : arguments_) {
    if (!lines.empty()) lines += '\n';
    lines += argument.name + ":" + argument.text;
  }
  return lines;
}

}  // namespace tornasole
