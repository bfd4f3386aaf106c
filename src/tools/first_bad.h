#pragma once

// first_bad: where a run went wrong: the first NaN or infinity, in execution order.
//
// Execution order is: global step, worker (sorted), position in the step's event file, which is the order the values
// were saved in. Full values are looked at element by element; where a step holds only reductions of a tensor, a
// reduction that is NaN or infinite counts, and is reported as such: an overflowing sum of finite elements looks the
// same.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tornasole/stats.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

struct FirstBadOptions {
  std::vector<std::string> regex = {};  // only tensors with any of these in their name (Python's re.search); empty: all
  Mode mode = Mode::kGlobal;            // kGlobal: all
  std::string worker = {};              // empty: all
  std::optional<std::int64_t> first_step = {}, end_step = {};  // global
  bool reductions = true;                                      // look at stored reductions as well
};

enum class NonFinite : std::uint8_t { kNan, kPosInf, kNegInf };
std::string_view non_finite_name(NonFinite kind) noexcept;  // "NaN", "Inf", "-Inf"

struct BadValue {
  std::string tensor;
  GlobalStep global_step = {};
  ModeStep step = {};
  std::string worker;
  std::optional<Reduction> reduction = {};  // set: it was found in this stored reduction, not in the value
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::int64_t position = 0;             // row-major, of the first bad element
  std::vector<std::int64_t> index = {};  // the same, per dimension
  NonFinite kind = NonFinite::kNan;      // of that element; complex: of the part that is bad, NaN first
  std::int64_t element_count = 0;
  std::int64_t nan_count = 0, pos_inf_count = 0, neg_inf_count = 0;
};

// The last value of the tensor before it went bad, by the same worker.
struct LastGood {
  GlobalStep global_step = {};
  ModeStep step = {};
  std::string worker;
  bool from_reductions = false;                 // no full value was saved: only what was stored, in `reductions`
  Shape shape = {};                             // if known
  Stats stats = {};                             // min, max, mean, std, l2, abs_max, count
  std::map<Reduction, double> reductions = {};  // with from_reductions
};

struct FirstBadReport {
  std::optional<BadValue> first = {};  // nothing: no NaN and no infinity in what was looked at
  std::optional<LastGood> last_good = {};
  // Every value that is bad at that global step, in execution order, `first` included; at most kMaxSameStep are listed.
  static constexpr std::size_t kMaxSameStep = 1000;
  std::vector<BadValue> same_step = {};
  std::int64_t same_step_count = 0;
  // What was looked at, up to the end of the first bad step.
  std::int64_t steps = 0, values = 0, reductions = 0;
  // Values that could not be read, so that a NaN in them would be missed; the first 100 are listed.
  std::int64_t unreadable_count = 0;
  std::vector<Damage> unreadable = {};
};

// kInvalid for a pattern Python would refuse, or a worker that the trial does not have.
Result<FirstBadReport> first_bad(const Trial& trial, const FirstBadOptions& options = {});

}  // namespace tornasole::tools
