#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/utf8.h"
#include "cli/text_width.h"
#include "config/environment.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMinWidth = 20;  // below it lines wrap, which is better than tables of dots
constexpr std::size_t kMaxWidth = 1000;

bool is_terminal(std::FILE* stream) noexcept { return isatty(fileno(stream)) == 1; }

std::optional<std::size_t> window_width(std::FILE* stream) noexcept {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::optional<std::size_t> columns_variable(const config::Environment& environment) {
  const auto text = environment.get_nonempty("COLUMNS");
  std::size_t columns = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), columns).ec != std::errc{}) return {};
  return columns == 0 ? std::nullopt : std::optional(columns);
}

bool speaks_utf8(const config::Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    auto value = environment.get_nonempty(name);
    if (!value) continue;
    std::transform(value->begin(), value->end(), value->begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return value->find("utf-8") != std::string::npos || value->find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

Style Style::of(std::FILE* stream) {
  const auto environment = config::Environment::from_process();
  const bool is_dumb = environment.get("TERM").value_or("dumb") == "dumb";
  return Style(is_terminal(stream) && !is_dumb && !environment.get_nonempty("NO_COLOR"));
}

std::string Style::paint(Tone tone, std::string_view text) const {
  constexpr std::array<std::string_view, 5> kCodes = {"", "1", "1;31", "33", "2"};
  if (!has_colours_ || tone == Tone::kPlain) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(tone)], text);
}

Terminal Terminal::of(std::FILE* stream) {
  const auto environment = config::Environment::from_process();
  Terminal terminal{
      .style = Style::of(stream), .is_terminal = cli::is_terminal(stream), .has_unicode = speaks_utf8(environment)};
  auto width = terminal.is_terminal ? window_width(stream) : std::nullopt;
  if (!width) width = columns_variable(environment);
  terminal.width = std::clamp(width.value_or(kPipedWidth), kMinWidth, kMaxWidth);
  return terminal;
}

std::string align(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::vector<std::string>> cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      if (i + 1 < row.size()) widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  std::string text;
  for (const auto& row : cells) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - columns_of(row[i]) + 2, ' ');
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
