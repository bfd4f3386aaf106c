#pragma once

// DiffTable: gathers what diff finds, tensor by tensor, within bounded memory.
//
// Used by: diff.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pattern/pattern.h"
#include "tools/compare_values.h"
#include "tools/diff.h"

namespace tornasole::tools {

// One value of A and the value of B it was held against.
struct ComparedPair {
  std::string_view tensor;
  GlobalStep global_step_a = {}, global_step_b = {};
  ModeStep step = {};
  std::string_view worker_a, worker_b;
  std::optional<Reduction> reduction = {};
};

class DiffTable {
 public:
  // kInvalid for a rule whose pattern Python would refuse.
  static Result<DiffTable> make(const DiffOptions& options);

  const Tolerance& tolerance_of(std::string_view tensor);
  void add(const ComparedPair& pair, const Tensor& a, const Tensor& b);
  // Steps are gathered: one mismatch per kind and tensor.
  void add_mismatch(MismatchKind kind, std::string_view tensor, std::optional<ModeStep> step, std::string_view what);
  // kInvalid if a rule's pattern took too many steps on a name: which tolerance holds for it is then not known.
  Status finish(DiffReport* report);

 private:
  explicit DiffTable(const DiffOptions& options) : options_(options) {}
  TensorDiff& row_of(std::string_view tensor);
  // True if the two can be compared element by element; a mismatch that counts is noted.
  bool check_form(const ComparedPair& pair, const Tensor& a, const Tensor& b, bool* is_different);
  void note_first(const ComparedPair& pair, FirstDifference difference);

  DiffOptions options_;
  std::vector<std::pair<pattern::Pattern, Tolerance>> rules_;
  std::map<std::string, TensorDiff, std::less<>> rows_;
  std::map<std::pair<MismatchKind, std::string>, Mismatch> mismatches_;
  std::int64_t mismatch_count_ = 0;
  std::optional<FirstDifference> first_;
  bool is_equal_ = true;
  Status status_;
};

}  // namespace tornasole::tools
