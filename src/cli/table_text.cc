#include "cli/table_text.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/utf8.h"
#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kMinYielding = 12;  // a name shorter than this tells nothing

}  // namespace

void TableText::add(std::vector<Cell> row) {
  assert(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> TableText::widths(const Terminal& terminal, std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_of(columns_[i].heading);
    for (const auto& row : rows_) width = std::max(width, columns_of(row[i].text));
    widths.push_back(width);
  }
  const std::size_t total = std::accumulate(widths.begin(), widths.end(), indent + kGap * (widths.size() - 1));
  if (total <= terminal.table_width()) return widths;
  std::size_t excess = total - terminal.table_width();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].gives_way || widths[i] <= kMinYielding) continue;
    const std::size_t cut = std::min(excess, widths[i] - kMinYielding);
    widths[i] -= cut;
    excess -= cut;
  }
  return widths;
}

std::string TableText::text(const Terminal& terminal, std::string_view indent) const {
  const std::vector<std::size_t> widths = this->widths(terminal, indent.size());
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line(indent);
    std::size_t pending = 0;  // blanks are written only before something that follows them
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = cell_of(i);
      const std::string shown = clip_middle(cell.text, widths[i], terminal.has_unicode);
      const std::size_t padding = widths[i] - std::min(widths[i], columns_of(shown));
      const bool is_right = columns_[i].align == Align::kRight;
      if (is_right) pending += padding;
      if (!shown.empty()) {
        line.append(pending, ' ');
        line += terminal.style.paint(cell.tone, shown);
        pending = 0;
      }
      pending += kGap + (is_right ? 0 : padding);
    }
    text += line + "\n";
  };
  add_line([&](std::size_t i) { return Cell{columns_[i].heading, Tone::kHeading}; });
  for (const auto& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return text;
}

}  // namespace tornasole::cli
