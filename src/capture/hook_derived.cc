// Derived statistics: small tensors made of a tensor that is due, on the thread that offers it.
//
//   1. A tensor is a source if a collection that is due contains it, the scalar set apart.
//   2. derived/<statistic>/<tensor> is an ordinary name: the plan says whether and in what form it is saved.
//   3. The statistics are computed from the borrowed view, without the lock, and go the way of every tensor.
//   4. What compares with an earlier step is kept as a copy, made at the due steps and at the step before each.

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/hook_state.h"
#include "capture/without_lock.h"
#include "plan/builtin_collections.h"

namespace tornasole::capture {
namespace {

using reduce::Statistic;

constexpr std::int64_t kMaxClassSamples = std::int64_t{1} << 20;
constexpr std::string_view kPrefix = "derived/";

bool compares(Statistic statistic) noexcept {
  return statistic == Statistic::kUpdate || statistic == Statistic::kCosinePrevious;
}

Result<Tensor> side_of(const Result<reduce::Movement>& movement, Statistic statistic) {
  if (!movement.ok()) return movement.error();
  return statistic == Statistic::kUpdate ? movement->update : movement->cosine_previous;
}

// Evaluation takes no optimizer steps: between two of its steps nothing moves.
bool is_stepped(Mode mode) noexcept { return mode == Mode::kTrain || mode == Mode::kGlobal; }

// Labels that are shares of all classes, such as one-hot ones, have the axis that predictions have lost.
Tensor labels_as_classes(const Tensor& labels, const Tensor& predictions, bool has_classes_last) {
  const std::size_t rank = labels.shape().rank();
  const bool has_shares =
      rank >= 2 && rank == predictions.shape().rank() + 1 && labels.element_count() != predictions.element_count();
  if (!has_shares) return labels;
  auto chosen = reduce::predicted_classes({labels.dtype(), labels.bytes().data(), labels.shape()},
                                          has_classes_last ? rank - 1 : 1);
  if (chosen.ok()) return std::move(*chosen);
  return labels;
}

}  // namespace

std::vector<Statistic> parse_statistics(const std::vector<std::string>& names) {
  std::vector<Statistic> statistics;
  for (const std::string& name : names) {
    if (const auto statistic = reduce::parse_statistic(name)) statistics.push_back(*statistic);
  }
  return statistics;
}

bool compare_with_previous(const std::vector<Statistic>& statistics) {
  return std::ranges::any_of(statistics, compares);
}

Status HookState::derive(const std::vector<std::string>& statistics) {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  if (plan_) return invalid_error("statistics to be derived are chosen before the first step");
  for (const std::string& name : statistics) {
    const auto statistic = reduce::parse_statistic(name);
    if (!statistic) return invalid_error("there is no statistic '{}' to be derived", printable(name));
    if (std::ranges::find(statistics_, *statistic) != statistics_.end()) continue;
    statistics_.push_back(*statistic);
    config_.derived.push_back(name);
  }
  keeps_previous_ = compare_with_previous(statistics_);
  if (!statistics_.empty()) collections_.include("derived");
  return {};
}

bool is_derived_name(std::string_view name) noexcept { return name.starts_with(kPrefix); }

bool HookState::keeps_before(Mode mode, std::int64_t next_due, std::int64_t mode_step) const noexcept {
  return keeps_previous_ && is_stepped(mode) && next_due == mode_step + 1;
}

// Called with every new plan. A schedule of its own restricts the collection; with the hook's, it follows the sources.
void HookState::find_derived_collection_locked() {
  derived_position_.reset();
  for (std::size_t i = 0; i < plan_->saved().size(); ++i) {
    const plan::Collection& collection = *plan_->saved()[i];
    if (collection.name != "derived") continue;
    derived_position_ = i;
    for (std::size_t mode = 0; mode < derived_follows_.size(); ++mode) {
      derived_follows_[mode] = collection.schedules[mode] == config_.schedules[mode];
    }
  }
}

plan::CollectionBits HookState::with_derived_locked(plan::CollectionBits due) const {
  if (derived_position_ && derived_follows_[mode_index(step_.id.mode)] && *derived_position_ / 64 < due.size()) {
    due[*derived_position_ / 64] |= std::uint64_t{1} << (*derived_position_ % 64);
  }
  return due;
}

bool HookState::is_derived_source_locked(const NameInfo& info, const plan::CollectionBits& due) {
  if (statistics_.empty() || info.is_bad || is_derived_name(*info.name)) return false;
  return std::ranges::any_of(plan_->order(info.id, due).collections, [this](int position) {
    const std::string& collection = plan_->saved()[static_cast<std::size_t>(position)]->name;
    return !plan::is_always_raw(collection) && collection != "derived";
  });
}

// A statistic that is about something else than this tensor is no loss, and is not mentioned.
bool HookState::applies_locked(const NameInfo& info, Statistic statistic) {
  const std::string& name = *info.name;
  switch (statistic) {
    case Statistic::kUnitRange: return roles_.bounds_of(name).has_value();
    case Statistic::kClasses: return roles_.is_label(name) || roles_.is_prediction(name);
    case Statistic::kUpdate:
    case Statistic::kCosinePrevious: break;
    default: return true;
  }
  if (!is_stepped(step_.id.mode)) return false;
  if (roles_.is_parameter_or_gradient(name)) return true;
  // Without a description, what the collections of parameters and gradients hold, and what is called a gradient.
  static constexpr std::array<std::string_view, 4> kCollections = {"weights", "biases", "gradients",
                                                                   "optimizer_gradients"};
  const bool is_member = std::ranges::any_of(plan_->order(info.id, all_bits_).collections, [this](int position) {
    return std::ranges::find(kCollections, plan_->saved()[static_cast<std::size_t>(position)]->name) !=
           kCollections.end();
  });
  return is_member || name.starts_with("gradient/") || name.starts_with("gradients/") ||
         name.starts_with("optimizer_gradient/");
}

HookState::NameInfo& HookState::derived_info_locked(NameInfo& info, std::size_t statistic) {
  if (info.derived.empty()) info.derived.resize(statistics_.size());
  NameInfo*& derived = info.derived[statistic];
  if (derived == nullptr) {
    derived =
        name_info_locked(fmt::format("{}{}/{}", kPrefix, reduce::statistic_name(statistics_[statistic]), *info.name));
  }
  return *derived;
}

std::vector<HookState::Derived> HookState::wanted_statistics_locked(NameInfo& info, const plan::CollectionBits& due) {
  std::vector<Derived> wanted;
  if (!is_derived_source_locked(info, due)) return wanted;
  const plan::CollectionBits bits = with_derived_locked(due);
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    if (!applies_locked(info, statistics_[i])) continue;
    NameInfo& derived = derived_info_locked(info, i);
    if (!derived.is_bad && plan_->order(derived.id, bits).is_wanted) wanted.push_back({statistics_[i], &derived});
  }
  return wanted;
}

bool HookState::is_kept_locked(NameInfo& info, const std::vector<Derived>& wanted, const TensorView& tensor) {
  if (!keeps_previous_ || tensor.dtype() == DType::kString || tensor.size_bytes() <= 0) return false;
  const auto is_comparison = [](const Derived& derived) { return compares(derived.statistic); };
  if (std::ranges::any_of(wanted, is_comparison)) return true;
  return step_.has_keep && std::ranges::any_of(wanted_statistics_locked(info, step_.due_next), is_comparison);
}

void HookState::derive(std::unique_lock<std::mutex>& lock, NameInfo& info, const TensorView& tensor,
                       const plan::CollectionBits& due, double wall_time) {
  if (statistics_.empty() || step_.is_lost) return;
  std::vector<Derived> wanted = wanted_statistics_locked(info, due);
  const bool is_kept = is_kept_locked(info, wanted, tensor);
  if (wanted.empty() && !is_kept) return;

  const std::uint64_t serial = step_.id.serial;
  const std::int64_t mode_step = step_.id.mode_step;
  const std::optional<std::int64_t> optimizer_step = step_.facts.optimizer_step;
  const std::optional<reduce::ValueRange> bounds = roles_.bounds_of(*info.name);
  const bool has_classes =
      std::ranges::any_of(wanted, [](const Derived& derived) { return derived.statistic == Statistic::kClasses; });
  const bool is_prediction = has_classes && roles_.is_prediction(*info.name);
  if (has_classes && !roles_.is_label(*info.name)) {
    std::erase_if(wanted, [](const Derived& derived) { return derived.statistic == Statistic::kClasses; });
  }
  KeptTensor kept = is_kept ? kept_.take(info.name) : KeptTensor{};
  const bool is_same_kind = kept && kept.dtype == tensor.dtype() && kept.shape == tensor.shape();
  const bool has_stepped = kept && kept.step_serial != serial &&
                           !(optimizer_step && kept.optimizer_step && *optimizer_step == *kept.optimizer_step);
  // A change that took several optimizer steps is not what one does.
  const bool is_next = kept && (mode_step == kept.mode_step + 1 ||
                                (optimizer_step && kept.optimizer_step && *optimizer_step == *kept.optimizer_step + 1));
  if (!is_same_kind || !has_stepped || !is_next) {
    std::erase_if(wanted, [](const Derived& derived) { return compares(derived.statistic); });
  }

  std::vector<Result<Tensor>> values;
  Result<Tensor> classes = Tensor();
  bool fits = true;
  {
    const WithoutLock unlocked(this, &lock);
    values.reserve(wanted.size());
    std::optional<Result<reduce::Movement>> movement;
    for (const Derived& derived : wanted) {
      if (!compares(derived.statistic)) {
        values.push_back(compute(derived.statistic, tensor, bounds));
        continue;
      }
      if (!movement) movement = reduce::movement(tensor, kept.view());
      values.push_back(side_of(*movement, derived.statistic));
    }
    if (has_classes) classes = read_classes(tensor, is_prediction);
    if (is_kept && (has_stepped || !is_same_kind)) {
      fits = kept_.copy(tensor, &kept);
      kept.step_serial = serial;
      kept.mode_step = mode_step;
      kept.optimizer_step = optimizer_step;
    }
  }
  if (is_kept) kept_.put(info.name, std::move(kept));
  if (!fits) {
    health_->value_dropped(
        "derived_memory",
        io_error("'{}' ({} bytes): what is kept for update and cosine_previous exceeds queue_bytes ({})", *info.name,
                 tensor.size_bytes(), kept_.limit_bytes()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    write_derived(lock, *info.name, wanted[i], std::move(values[i]), due, wall_time);
  }
  if (has_classes) pair_classes(lock, info, std::move(classes), due, wall_time);
}

// Never with the lock: it reads the whole tensor.
Result<Tensor> HookState::compute(Statistic statistic, const TensorView& tensor,
                                  const std::optional<reduce::ValueRange>& bounds) {
  assert(bounds || statistic != Statistic::kUnitRange);
  switch (statistic) {
    case Statistic::kCounts: return reduce::counts(tensor);
    case Statistic::kUnitActivity: return reduce::unit_activity(tensor);
    case Statistic::kUnitRange: return reduce::unit_range(tensor, *bounds);
    case Statistic::kAcrossSamples: return reduce::across_samples(tensor);
    case Statistic::kQuantiles: return reduce::quantiles(tensor);
    case Statistic::kHash: return reduce::content_hash(tensor);
    case Statistic::kUpdate:
    case Statistic::kCosinePrevious: break;  // of two tensors
    case Statistic::kClasses: return reduce::class_counts(tensor);
  }
  return invalid_error("{} needs the tensor as it was before", reduce::statistic_name(statistic));
}

void HookState::write_derived(std::unique_lock<std::mutex>& lock, const std::string& source, const Derived& derived,
                              Result<Tensor> value, const plan::CollectionBits& due, double wall_time) {
  if (!value.ok()) {
    const std::string cause = fmt::format("derived_{}", reduce::statistic_name(derived.statistic));
    health_->value_left_out(cause, fmt::format("'{}': {}", source, value.error().message));
    return;
  }
  const TensorView view(value->dtype(), value->bytes().data(), value->shape());
  Work work = make_work_locked(*derived.info, with_derived_locked(due), view);
  work.wall_time = wall_time;
  work.summary = {};  // how often which statistic occurs tells nobody anything
  if (!work.is_empty()) write_work(lock, work, view);
}

// ---- classes

// The class of every sample, of labels or of predictions. Scores have their classes along axis 1, in TensorFlow along
// the last one.
Result<Tensor> HookState::read_classes(const TensorView& tensor, bool is_prediction) const {
  if (tensor.dtype() == DType::kString) return invalid_error("classes: texts are not allowed; allowed: numbers");
  const std::size_t rank = tensor.shape().rank();
  const bool has_scores = is_prediction && dtype_is_inexact(tensor.dtype()) && rank >= 2;
  const std::size_t axis = config_.framework == Framework::kTensorflow ? rank - 1 : 1;
  const std::int64_t scores = has_scores ? std::max<std::int64_t>(tensor.shape()[axis], 1) : 1;
  if (tensor.element_count() / scores > kMaxClassSamples) {
    return invalid_error("classes: {} samples are too many to be compared; allowed: at most {}",
                         tensor.element_count() / scores, kMaxClassSamples);
  }
  return has_scores ? reduce::predicted_classes(tensor, axis) : Tensor(tensor);
}

// Keeps one side of a pair until the other comes in the same step.
void HookState::pair_classes(std::unique_lock<std::mutex>& lock, NameInfo& info, Result<Tensor> classes,
                             const plan::CollectionBits& due, double wall_time) {
  const std::string& name = *info.name;
  if (!classes.ok()) {
    health_->value_left_out("derived_classes", fmt::format("'{}': {}", name, classes.error().message));
    return;
  }
  struct Complete {
    std::string predictions;
    ClassSides sides;
  };
  std::vector<Complete> complete;
  for (const TensorRoles::ClassPair& pair : roles_.class_pairs()) {
    if (pair.labels != name && pair.predictions != name) continue;
    ClassSides& sides = step_.classes[{pair.labels, pair.predictions}];
    (pair.predictions == name ? sides.predictions : sides.labels) = *classes;
    if (sides.labels && sides.predictions) complete.push_back({pair.predictions, std::exchange(sides, {})});
  }
  for (const Complete& pair : complete) {
    NameInfo* predictions = name_info_locked(pair.predictions);
    const std::vector<Derived> wanted = wanted_statistics_locked(*predictions, due);
    const auto derived = std::ranges::find(wanted, Statistic::kClasses, &Derived::statistic);
    if (derived == wanted.end()) continue;
    const Tensor& chosen = *pair.sides.predictions;
    const Tensor labels = labels_as_classes(*pair.sides.labels, chosen, config_.framework == Framework::kTensorflow);
    write_derived(lock, pair.predictions, *derived,
                  reduce::class_pairs({labels.dtype(), labels.bytes().data(), labels.shape()},
                                      {chosen.dtype(), chosen.bytes().data(), chosen.shape()}),
                  due, wall_time);
  }
}

}  // namespace tornasole::capture
