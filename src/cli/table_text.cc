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

std::vector<std::size_t> TableText::widths(std::size_t room) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_of(columns_[i].heading);
    for (const auto& row : rows_) width = std::max(width, columns_of(row[i].text));
    widths.push_back(std::max<std::size_t>(width, 1));
  }
  const auto total = [&] {
    const auto gaps =
        static_cast<std::size_t>(std::count_if(widths.begin(), widths.end(), [](auto w) { return w > 0; }));
    return std::accumulate(widths.begin(), widths.end(), kGap * (gaps - 1));
  };
  const auto yield = [&] {
    for (std::size_t i = 0; i < columns_.size() && total() > room; ++i) {
      if (columns_[i].gives_way && widths[i] > kMinYielding) {
        widths[i] -= std::min(total() - room, widths[i] - kMinYielding);
      }
    }
  };
  const std::vector<std::size_t> whole = widths;
  for (yield(); total() > room; yield()) {
    std::size_t worst = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] > 0 && columns_[i].expendable > columns_[worst].expendable) worst = i;
    }
    if (columns_[worst].expendable == 0 || widths[worst] == 0) break;
    widths[worst] = 0;
    // With a column gone there may be room again for what had given way.
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].gives_way && widths[i] > 0) widths[i] = whole[i];
    }
  }
  return widths;
}

std::string TableText::text(const Terminal& terminal, std::string_view indent) const {
  const std::size_t edge = terminal.table_width();
  const std::vector<std::size_t> widths = this->widths(edge > indent.size() ? edge - indent.size() : 0);
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line(indent);
    std::size_t pending = 0;  // blanks are written only before something that follows them
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
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
