#include "rules/invariant_learner.h"

#include <algorithm>

#include "base/errors.h"
#include "rules/content_hashes.h"

namespace tornasole {
namespace rules {
namespace {

constexpr std::int64_t kFewest = 5;     // times that something must have held
constexpr double kRangeSpreads = 10;    // a range is widened by so many times its width
constexpr double kRounding = 1e-6;      // and at least by so much of its numbers: other machines add up differently
constexpr double kRatioDecades = 2;     // a ratio by so many powers of ten
constexpr std::size_t kMaxName = 1000;  // characters

class Keeping {
 public:
  explicit Keeping(std::vector<Invariant>* list) : list_(*list) {}

  void of(const std::pair<std::string, Mode>& key) { key_ = key; }
  Invariant* keep(InvariantKind kind, const LearnedFacts::Held& held) {
    if (held.is_broken || held.count < kFewest) return nullptr;
    list_.push_back({.kind = kind, .tensor = key_.first, .mode = key_.second, .support = held.count});
    return &list_.back();
  }

 private:
  std::vector<Invariant>& list_;
  std::pair<std::string, Mode> key_;
};

void keep_ranges(Keeping* keeping, const LearnedFacts& facts) {
  for (std::size_t i = 0; i < kRangeStats.size(); ++i) {
    const LearnedFacts::Bounds& bounds = facts.ranges[i];
    Invariant* kept = keeping->keep(InvariantKind::kRange, bounds.held);
    if (kept == nullptr) continue;
    const double rounding = kRounding * std::max(std::fabs(bounds.low), std::fabs(bounds.high));
    const double margin = std::max(kRangeSpreads * (bounds.high - bounds.low), rounding);
    kept->statistic = stat_name(kRangeStats[i]);
    kept->low = bounds.low - margin;
    kept->high = bounds.high + margin;
  }
}

void keep_shape(Keeping* keeping, const LearnedFacts& facts) {
  if (Invariant* same = keeping->keep(InvariantKind::kShape, facts.same_shape)) {
    same->shape = facts.shape;
  } else {
    keeping->keep(InvariantKind::kShape, facts.kept_shape);
  }
  if (Invariant* same = keeping->keep(InvariantKind::kDType, facts.same_dtype)) same->dtype = facts.dtype;
}

}  // namespace

void LearnedFacts::Bounds::note(double number) {
  held.note(std::isfinite(number));
  low = held.count == 1 ? number : std::min(low, number);
  high = held.count == 1 ? number : std::max(high, number);
}

std::optional<std::string> pattern_of_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName) return std::nullopt;
  constexpr std::string_view kSpecial = "\\.^$|?*+()[]{}";
  std::string pattern = "^";
  bool is_number = false;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !is_number) pattern += "\\d+";
    is_number = is_digit;
    if (is_digit) continue;
    if (kSpecial.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

void InvariantLearner::look_at(const StepView& step, Findings& /*findings*/) {
  ++steps_;
  ++mode_steps_[step.mode()];
  const StepIndex index = index_of(step);
  std::map<std::string_view, std::vector<const StepTensor*>> copies;
  for (const StepTensor* tensor : step.tensors()) copies[tensor->name].push_back(tensor);
  for (const auto& [name, tensors] : copies) {
    const auto pattern = pattern_of_name(name);
    if (!pattern) continue;
    LearnedFacts& facts = facts_[{*pattern, step.mode()}];
    facts.trials.insert(trial_);
    ++seen_[{std::string(name), step.mode()}];
    for (const StepTensor* tensor : tensors) note_tensor(*tensor, step.mode(), index, facts);
    note_workers(tensors, facts);
  }
}

void InvariantLearner::note_tensor(const StepTensor& tensor, Mode mode, const StepIndex& index, LearnedFacts& facts) {
  if (const auto finite = is_finite(tensor)) facts.finite.note(*finite);
  for (std::size_t i = 0; i < kRangeStats.size(); ++i) {
    if (const auto number = tensor.stats[kRangeStats[i]]) facts.ranges[i].note(*number);
  }
  if (const auto ratio = gradient_ratio(tensor, index)) facts.ratio.note(*ratio);
  if (tensor.dtype) {
    if (facts.dtype.empty()) facts.dtype = dtype_name(*tensor.dtype);
    facts.same_dtype.note(facts.dtype == dtype_name(*tensor.dtype));
  }
  Last& last = last_.of(tensor, mode);
  if (tensor.shape) {
    if (!facts.shape) facts.shape = tensor.shape;
    facts.same_shape.note(*facts.shape == *tensor.shape);
    if (last.shape) facts.kept_shape.note(*last.shape == *tensor.shape);
    last.shape = tensor.shape;
  }
  if (const auto hash = content_hash_of(tensor)) {
    if (last.hash) {
      facts.changes.note(*last.hash != *hash);
      facts.constant.note(*last.hash == *hash);
    }
    last.hash = hash;
  }
}

void InvariantLearner::note_workers(const std::vector<const StepTensor*>& copies, LearnedFacts& facts) {
  if (copies.size() < 2) return;
  std::set<std::int64_t> hashes;
  for (const StepTensor* tensor : copies) {
    const auto hash = content_hash_of(*tensor);
    if (!hash) return;
    hashes.insert(*hash);
  }
  facts.equal_workers.note(hashes.size() == 1);
  facts.distinct_workers.note(hashes.size() == copies.size());
}

void InvariantLearner::finish() {
  for (const auto& [key, count] : seen_) {
    const auto& [name, mode] = key;
    LearnedFacts& facts = facts_[{*pattern_of_name(name), mode}];
    facts.present.count += count;
    facts.present.is_broken |= count != mode_steps_[mode];
  }
}

std::vector<Invariant> kept_invariants(const InvariantLearner::Facts& facts,
                                       const std::map<Mode, std::set<std::size_t>>& trials_with_mode) {
  std::vector<Invariant> list;
  Keeping keeping(&list);
  for (const auto& [key, seen] : facts) {
    keeping.of(key);
    keeping.keep(InvariantKind::kFinite, seen.finite);
    keep_shape(&keeping, seen);
    keeping.keep(InvariantKind::kChanges, seen.changes);
    keeping.keep(InvariantKind::kConstant, seen.constant);
    keeping.keep(InvariantKind::kEqualWorkers, seen.equal_workers);
    keeping.keep(InvariantKind::kDistinctWorkers, seen.distinct_workers);
    keep_ranges(&keeping, seen);
    if (Invariant* ratio = keeping.keep(InvariantKind::kRatio, seen.ratio.held)) {
      ratio->low = std::pow(10, seen.ratio.low - kRatioDecades);
      ratio->high = std::pow(10, seen.ratio.high + kRatioDecades);
    }
    if (seen.trials == trials_with_mode.at(key.second)) keeping.keep(InvariantKind::kPresent, seen.present);
  }
  return list;
}

}  // namespace rules

Result<Invariants> learn_invariants(std::span<Trial* const> trials) {
  Invariants invariants;
  rules::InvariantLearner::Facts facts;
  std::map<Mode, std::set<std::size_t>> trials_with_mode;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    auto learner = std::make_unique<rules::InvariantLearner>(&facts, i);
    rules::InvariantLearner* own = learner.get();
    RuleRunner runner(trials[i]);
    runner.add({.name = "InvariantLearner", .rule = std::move(learner)});
    TORNASOLE_CHECK(runner.run());
    own->finish();
    invariants.trials.push_back(trials[i]->path());
    invariants.steps += own->steps();
    for (const auto& [key, seen] : facts) {
      if (seen.trials.contains(i)) trials_with_mode[key.second].insert(i);
    }
  }
  invariants.list = rules::kept_invariants(facts, trials_with_mode);
  return invariants;
}

}  // namespace tornasole
