#pragma once

// A table: a heading, columns of text or numbers, one column that gives way when the terminal is narrow.

#include <string>
#include <utility>
#include <vector>

#include "cli/terminal.h"

namespace tornasole::cli {

struct Cell {
  std::string text = {};
  Tone tone = Tone::kPlain;
};

class TableText {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string heading;
    Align align = Align::kLeft;
    bool gives_way = false;  // its cells lose their middle when the line would be too long
    int expendable = 0;      // left out where that is not enough, the highest first; 0: never
  };

  explicit TableText(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as columns. What they hold is made printable here.
  void add(std::vector<Cell> row);
  bool empty() const noexcept { return rows_.empty(); }
  // Without rows, nothing but the heading.
  std::string text(const Terminal& terminal, std::string_view indent = "") const;

 private:
  // Of each column; 0 for one that is left out.
  std::vector<std::size_t> widths(std::size_t room) const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tornasole::cli
