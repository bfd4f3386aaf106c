#include "tools/tolerance.h"

#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "pattern/pattern.h"

namespace tornasole::tools {
namespace {

constexpr std::string_view kAllowed = "rel:<number>, abs:<number>, ulp:<integer>, separated by commas, or exact";

template <typename T>
bool parse_number(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

Status read_part(std::string_view part, Tolerance* tolerance, std::string* seen) {
  const std::size_t colon = part.find(':');
  const std::string_view name = part.substr(0, colon);
  const std::string_view text = colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
  if (name != "rel" && name != "abs" && name != "ulp") {
    return invalid_error("tolerance '{}': '{}' is not known; allowed is {}", part, name, kAllowed);
  }
  if (seen->find(name) != std::string::npos) return invalid_error("tolerance '{}': {} is given twice", part, name);
  *seen += name;
  if (name == "ulp") {
    if (parse_number(text, &tolerance->ulp)) return {};
    return invalid_error("tolerance '{}': '{}' is not a whole number of at least 0", part, text);
  }
  double& number = name == "rel" ? tolerance->rel : tolerance->abs;
  if (parse_number(text, &number) && std::isfinite(number) && number >= 0) return {};
  return invalid_error("tolerance '{}': '{}' is not a finite number of at least 0", part, text);
}

}  // namespace

Result<Tolerance> parse_tolerance(std::string_view text) {
  if (text == "exact") return Tolerance();
  if (text.empty()) return invalid_error("the tolerance is empty; allowed is {}", kAllowed);
  Tolerance tolerance;
  std::string seen;
  while (true) {
    const std::size_t comma = text.find(',');
    TORNASOLE_CHECK(read_part(text.substr(0, comma), &tolerance, &seen));
    if (comma == std::string_view::npos) return tolerance;
    text.remove_prefix(comma + 1);
  }
}

Result<ToleranceRule> parse_tolerance_rule(std::string_view text) {
  const std::size_t divider = text.rfind('=');
  if (divider == std::string_view::npos || divider == 0) {
    return invalid_error("tolerance rule '{}': PATTERN=TOLERANCE is needed, for example ^gradient/=rel:1e-5", text);
  }
  ToleranceRule rule{.pattern = std::string(text.substr(0, divider))};
  TORNASOLE_TRY(const pattern::Pattern compiled, pattern::Pattern::compile(rule.pattern));
  static_cast<void>(compiled);
  TORNASOLE_TRY(rule.tolerance, parse_tolerance(text.substr(divider + 1)));
  return rule;
}

std::string tolerance_text(const Tolerance& tolerance) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& number) {
    if (number == 0) return;
    if (!text.empty()) text += ',';
    text += fmt::format("{}:{}", name, number);
  };
  add("rel", tolerance.rel);
  add("abs", tolerance.abs);
  add("ulp", tolerance.ulp);
  return text.empty() ? "exact" : text;
}

}  // namespace tornasole::tools
