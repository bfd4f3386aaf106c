#pragma once

// diff: where two runs part.
//
//   in:  two trials, A and B; tolerances
//   out: DiffReport: the earliest difference, one line per tensor, what only one of them has
//
// Values are aligned by tensor name, mode step and worker; a value saved without a mode by its global step. Where each
// trial has one worker, their names need not agree, so that a C++ run can be held against a Python run. "Earliest" is
// A's execution order: global step, worker, position in the event file. Stored reductions are compared with stored
// reductions where one of the two has no full value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/tolerance.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

struct DiffOptions {
  Tolerance tolerance = {};               // default: exact
  std::vector<ToleranceRule> rules = {};  // the first whose pattern is found in the name holds instead
  std::vector<std::string> regex = {};    // only tensors with any of these in their name; empty: all
  Mode mode = Mode::kGlobal;              // kGlobal: all
  // Only steps with first_step <= step < end_step: global steps of A.
  std::optional<std::int64_t> first_step = {}, end_step = {};
  bool align_global_steps = false;  // by global step instead of mode step
  bool ignore_missing = false;      // names and steps that only one has are listed but are no difference
  bool ignore_dtype = false;        // element types may differ, values are compared
};

// One element, or one reduction, that differs by more than the tolerance.
struct FirstDifference {
  std::string tensor = {};
  GlobalStep global_step_a = {}, global_step_b = {};
  ModeStep step = {};
  std::string worker_a = {}, worker_b = {};
  std::optional<Reduction> reduction = {};
  std::int64_t position = 0;             // row-major; -1 when shapes, types or texts differ rather than numbers
  std::vector<std::int64_t> index = {};  // per dimension
  std::string a = {}, b = {};            // the two elements as text
  double abs = 0, rel = 0;               // NaN where one is not a number; rel = abs / max(|a|, |b|)
  std::optional<std::uint64_t> ulp = {};
  Tolerance tolerance = {};  // that was exceeded
  std::string what = {};     // one sentence, names not escaped
};

// One line of the table. Maxima are over all elements of all steps, within the tolerance or not; an element where just
// one is NaN, or infinities differ, makes them infinite.
struct TensorDiff {
  std::string tensor;
  Tolerance tolerance = {};
  std::int64_t values_compared = 0;   // value pairs, one per step and worker; reductions counted apart
  std::int64_t values_different = 0;  // with an element over the tolerance, or another shape or type
  std::int64_t reductions_compared = 0, reductions_different = 0;
  std::int64_t elements_different = 0;      // over the tolerance
  std::optional<ModeStep> first_step = {};  // of a difference over the tolerance
  double max_abs = 0, max_rel = 0;
  std::uint64_t max_ulp = 0;
  // The largest absolute difference at each step, in order, thinned to at most kMaxPoints by keeping the largest of
  // neighbours; for a small plot.
  static constexpr std::size_t kMaxPoints = 200;
  struct Point {
    std::int64_t global_step = 0;  // of A
    double max_abs = 0;
  };
  std::vector<Point> points = {};

  bool differs() const noexcept { return values_different > 0 || reductions_different > 0; }
};

enum class MismatchKind : std::uint8_t {
  kNameOnlyInA,   // no step of that name in the other
  kNameOnlyInB,   //
  kStepsOnlyInA,  // `steps` of the tensor are not in the other
  kStepsOnlyInB,  //
  kWorkers,       // at a step, other workers
  kShape,         //
  kDtype,         //
  kForm,          // a full value here, other reductions there: nothing to compare
  kUnreadable,    // damaged in A or B
};
std::string_view mismatch_kind_name(MismatchKind kind) noexcept;  // "only in A", "shape", ...

struct Mismatch {
  MismatchKind kind = MismatchKind::kShape;
  std::string tensor;
  std::vector<ModeStep> steps = {};  // the first few; empty for whole names
  std::int64_t step_count = 0;
  std::string what;  // "[2, 3] in A, [3, 2] in B"
  bool is_difference = true;
};

struct DiffReport {
  std::string name_a, name_b, path_a, path_b;
  std::optional<FirstDifference> first = {};
  std::vector<TensorDiff> tensors = {};   // compared at least once, sorted by name
  std::vector<Mismatch> mismatches = {};  // at most kMaxMismatches
  static constexpr std::size_t kMaxMismatches = 10'000;
  std::int64_t mismatch_count = 0;  // all of them
  std::int64_t steps_compared = 0, values_compared = 0, reductions_compared = 0;
  bool is_equal = true;  // exit code 0
};

// kInvalid for a pattern Python would refuse, and for one that takes too many steps.
Result<DiffReport> diff(const Trial& a, const Trial& b, const DiffOptions& options = {});

}  // namespace tornasole::tools
