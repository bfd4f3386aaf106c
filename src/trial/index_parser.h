#pragma once

// IndexParser: index files, one after the other, into tables and locations.
//
//   in:  the text of a file
//   out: ParsedIndex, whose layout and names are in the tables it was given
//
// Used by: index_loader, one parser a thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/index.h"
#include "tornasole/model.h"
#include "trial/index_tables.h"

namespace tornasole::trial {

struct ParsedIndex {
  std::int64_t mode_step = 0;
  Location* locations = nullptr;  // one per series of the layout, in its order
  std::uint32_t layout = 0;
  Mode mode = Mode::kGlobal;
  bool is_partial = false;
  std::string event_file = {};
  StepFacts facts = {};
};

class IndexParser final : private format::IndexVisitor {
 public:
  // Both outlive the parser.
  IndexParser(IndexTables* tables, LocationArena* arena) : tables_(*tables), arena_(*arena) {}

  // kCorrupt with what is wrong. Names of a damaged file may stay in the tables, but in no layout.
  Result<ParsedIndex> parse(Bytes& text);

 private:
  // A name that stood at this place of the file before, and is likely to stand there again.
  struct Expected {
    std::string name;
    Series series = 0;
  };

  void on_tensor_list() override { forget(/*shapes=*/false); }
  void on_shape_list() override { forget(/*shapes=*/true); }
  void on_tensor(const Tensor& tensor) override;
  void on_shape(const ShapeRecord& record) override;
  // Takes out what an earlier list of this kind brought.
  void forget(bool shapes);
  Series find_series(std::string_view name);
  void order_entries();

  IndexTables& tables_;
  LocationArena& arena_;
  format::IndexDecoder decoder_;
  std::vector<Expected> expected_;
  bool is_too_much_ = false;  // more tensors than can be numbered

  // Of the file being parsed, in its order:
  std::vector<Series> series_;
  std::vector<Location> found_;
  // Of the last one, for as long as files are alike:
  std::vector<Series> last_series_;
  std::vector<std::uint32_t> order_;  // place in the layout -> place in the file
  std::uint32_t layout_ = 0;
};

}  // namespace tornasole::trial
