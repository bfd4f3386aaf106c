#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/utf8.h"
#include "config/environment.h"

namespace tornasole::cli {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no column.
std::size_t width(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

Style Style::of(std::FILE* stream) {
  const auto environment = config::Environment::from_process();
  const bool is_dumb = environment.get("TERM").value_or("dumb") == "dumb";
  return Style(isatty(fileno(stream)) == 1 && !is_dumb && !environment.get_nonempty("NO_COLOR"));
}

std::string Style::paint(std::string_view code, std::string_view text) const {
  return has_colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string align(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::vector<std::string>> cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      if (i + 1 < row.size()) widths[i] = std::max(widths[i], width(row[i]));
    }
  }
  std::string text;
  for (const auto& row : cells) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

bool print(std::FILE* stream, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
}

}  // namespace tornasole::cli
