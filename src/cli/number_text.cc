#include "cli/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tornasole::cli {

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Inf" : "Inf";
  return fmt::format("{:.6g}", value);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto amount = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // The next unit as soon as one digit after the point would round up to 1024.
  for (; amount >= 1023.95 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string counted(std::int64_t count, const char* singular, const char* plural) {
  if (count == 1) return fmt::format("1 {}", singular);
  return plural != nullptr ? fmt::format("{} {}", count, plural) : fmt::format("{} {}s", count, singular);
}

void write_number(JsonWriter& json, double value) {
  if (std::isfinite(value)) {
    json.value(value);
  } else {
    json.value(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
  }
}

std::string requests_text(const std::map<std::string, std::int64_t>& requests) {
  const auto count = [&](const char* name) {
    const auto found = requests.find(name);
    return found == requests.end() ? std::int64_t{0} : found->second;
  };
  std::string text;
  for (const char* kind : {"put", "get", "list", "other"}) {
    if (count(kind) > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count(kind), kind);
  }
  if (count("retries") > 0) text += fmt::format(", {} of them again", count("retries"));
  const auto bytes = [&](const char* name) { return bytes_text(static_cast<std::uint64_t>(count(name))); };
  text += fmt::format("; {} read, {} written", bytes("bytes_read"), bytes("bytes_written"));
  if (count("spooled") > 0) text += fmt::format("; {} by way of the spool", counted(count("spooled"), "file"));
  if (count("waiting") > 0) text += fmt::format(", {} still there", count("waiting"));
  return text;
}

}  // namespace tornasole::cli
