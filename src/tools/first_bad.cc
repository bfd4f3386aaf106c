#include "tools/first_bad.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/errors.h"
#include "reduce/reduce.h"
#include "tools/elements.h"

namespace tornasole::tools {
namespace {

constexpr std::size_t kMaxUnreadable = 100;

template <typename T>
std::optional<NonFinite> kind_of(T value) {
  if constexpr (kIsComplex<T>) {
    const auto real = kind_of(value.real());
    const auto imaginary = kind_of(value.imag());
    if (real == NonFinite::kNan || imaginary == NonFinite::kNan) return NonFinite::kNan;
    return real ? real : imaginary;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return NonFinite::kNan;
    constexpr T kLargest = std::numeric_limits<T>::max();
    if (value > kLargest) return NonFinite::kPosInf;
    if (value < -kLargest) return NonFinite::kNegInf;
  }
  return std::nullopt;
}

// Position, kind and counts of what is not finite.
void describe_elements(const TensorView& view, BadValue* bad) {
  const Tensor tensor(view);
  const auto* data = reinterpret_cast<const std::byte*>(tensor.bytes().data());
  bool has_first = false;
  visit_elements(tensor.dtype(), [&](auto load) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      const auto kind = kind_of(load(data, i));
      if (!kind) continue;
      if (!std::exchange(has_first, true)) {
        bad->position = i;
        bad->kind = *kind;
      }
      ++(*kind == NonFinite::kNan      ? bad->nan_count
         : *kind == NonFinite::kPosInf ? bad->pos_inf_count
                                       : bad->neg_inf_count);
    }
  });
  bad->dtype = view.dtype();
  bad->shape = view.shape();
  bad->element_count = view.element_count();
  bad->index = index_of(bad->shape, bad->position);
}

class Search {
 public:
  explicit Search(const Trial& trial) : trial_(trial) {}

  // False: the first bad step is over.
  bool look_at(const SweptValue& swept) {
    if (report_.first && swept.global_step != report_.first->global_step) return false;
    if (swept.global_step.number != last_step_) {
      last_step_ = swept.global_step.number;
      ++report_.steps;
    }
    ++(swept.reduction ? report_.reductions : report_.values);
    if (swept.value == nullptr) {
      note_unreadable(swept);
    } else if (!reduce::has_non_finite(*swept.value)) {
      note_good(swept);
    } else if (!swept.reduction || !has_readable_value(swept)) {
      note_bad(swept);
    }
    return true;
  }

  Result<FirstBadReport> finish() {
    if (report_.first) {
      TORNASOLE_TRY(report_.last_good, find_last_good(*report_.first));
    }
    return std::move(report_);
  }

 private:
  static std::string key_of(std::string_view name, std::string_view worker) {
    return fmt::format("{}\n{}", worker, name);  // a worker's name has no line break
  }

  // Then the value itself decides: an overflowing sum says nothing.
  bool has_readable_value(const SweptValue& swept) const {
    const auto tensor = trial_.tensor(swept.name);
    const ModeStep step{Mode::kGlobal, swept.global_step.number};
    return tensor.ok() && tensor->has_value(step, swept.worker) && tensor->value(step, swept.worker).ok();
  }

  void note_unreadable(const SweptValue& swept) {
    if (++report_.unreadable_count; report_.unreadable.size() >= kMaxUnreadable) return;
    const std::string message = swept.error != nullptr ? swept.error->message : "it cannot be read";
    report_.unreadable.push_back({.path = std::string(swept.name), .what = message});
  }

  void note_good(const SweptValue& swept) {
    GoodSteps& steps = good_[key_of(swept.name, swept.worker)];
    if (steps.last == swept.global_step.number) return;
    steps.before = std::exchange(steps.last, swept.global_step.number);
  }

  void note_bad(const SweptValue& swept) {
    ++report_.same_step_count;
    if (report_.first && report_.same_step.size() >= FirstBadReport::kMaxSameStep) return;
    BadValue bad{.tensor = std::string(swept.name),
                 .global_step = swept.global_step,
                 .step = swept.step,
                 .worker = std::string(swept.worker),
                 .reduction = swept.reduction};
    describe_elements(*swept.value, &bad);
    if (!report_.first) report_.first = bad;
    report_.same_step.push_back(std::move(bad));
  }

  Result<std::optional<LastGood>> find_last_good(const BadValue& bad) const {
    const auto found = good_.find(key_of(bad.tensor, bad.worker));
    if (found == good_.end()) return std::optional<LastGood>();
    const GoodSteps& steps = found->second;
    const ModeStep step{Mode::kGlobal, steps.last == bad.global_step.number ? steps.before : steps.last};
    if (step.number < 0) return std::optional<LastGood>();
    LastGood good{
        .global_step = {step.number}, .step = trial_.mode_step({step.number}).value_or(step), .worker = bad.worker};
    TORNASOLE_TRY(const TrialTensor tensor, trial_.tensor(bad.tensor));
    if (const auto shape = tensor.shape(step, bad.worker); shape.ok()) good.shape = *shape;
    if (tensor.has_value(step, bad.worker)) {
      TORNASOLE_TRY(const Tensor value, tensor.value(step, bad.worker));
      std::vector<std::string_view> texts;
      TORNASOLE_TRY(good.stats, stats(view_of(value, &texts), {Stat::kCount, Stat::kMin, Stat::kMax, Stat::kMean,
                                                               Stat::kStd, Stat::kL2, Stat::kAbsMax}));
      return std::optional<LastGood>(std::move(good));
    }
    good.from_reductions = true;
    TORNASOLE_TRY(const auto reductions, tensor.reduction_values(step, bad.worker));
    for (const auto& [reduction, value] : reductions) {
      if (const auto number = tensor.reduction_value(step, reduction, bad.worker); number.ok()) {
        good.reductions[reduction] = *number;
      }
    }
    return std::optional<LastGood>(std::move(good));
  }

  // The last two global steps at which something of a tensor was finite: at the bad step itself, one reduction may be
  // while another is not.
  struct GoodSteps {
    std::int64_t last = -1;
    std::int64_t before = -1;
  };

  const Trial& trial_;
  FirstBadReport report_;
  std::int64_t last_step_ = -1;
  std::unordered_map<std::string, GoodSteps> good_;  // by worker and name
};

}  // namespace

std::string_view non_finite_name(NonFinite kind) noexcept {
  switch (kind) {
    case NonFinite::kNan: return "NaN";
    case NonFinite::kPosInf: return "Inf";
    case NonFinite::kNegInf: return "-Inf";
  }
  return "unknown";
}

Result<FirstBadReport> first_bad(const Trial& trial, const FirstBadOptions& options) {
  const std::vector<std::string> workers = trial.workers();
  if (!options.worker.empty() && std::ranges::find(workers, options.worker) == workers.end()) {
    return make_error(ErrorCode::kInvalid, ErrorKind::kInvalidWorker, "worker '{}': the trial has {}", options.worker,
                      fmt::join(workers, ", "));
  }
  SweepQuery query{.mode = options.mode,
                   .first_step = options.first_step,
                   .end_step = options.end_step,
                   .worker = options.worker,
                   .reductions = options.reductions};
  if (!options.regex.empty()) {
    TORNASOLE_TRY(query.names, trial.tensor_names({.regex = options.regex}));
    if (query.names.empty()) return FirstBadReport();
  }
  Search search(trial);
  TORNASOLE_CHECK(trial.sweep(query, [&](const SweptValue& swept) { return search.look_at(swept); }));
  return search.finish();
}

}  // namespace tornasole::tools
