// 1. Names and steps that only one trial has are listed from the two indices.
// 2. A is swept in execution order, and its values wait until some tens of megabytes have come together.
// 3. Their counterparts are read from B in the order of its files, and each pair is compared, in the order of A.

#include "tools/diff.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/errors.h"
#include "tools/diff_table.h"

namespace tornasole::tools {
namespace {

constexpr std::size_t kMaxWaiting = 8192;
constexpr std::uint64_t kMaxWaitingBytes = std::uint64_t{32} << 20U;

bool is_in_range(std::int64_t step, const DiffOptions& options) {
  return (!options.first_step || step >= *options.first_step) && (!options.end_step || step < *options.end_step);
}

class Diff {
 public:
  Diff(const Trial& a, const Trial& b, const DiffOptions& options, DiffTable* table)
      : a_(a), b_(b), options_(options), table_(*table) {
    const auto workers_a = a.workers();
    const auto workers_b = b.workers();
    if (workers_a.size() == 1 && workers_b.size() == 1) only_worker_b_ = workers_b[0];
  }

  Status run() {
    TORNASOLE_TRY(const auto names_a, names_of(a_));
    TORNASOLE_TRY(const auto names_b, names_of(b_));
    for (const std::string& name : names_b) {
      if (!std::ranges::binary_search(names_a, name)) only_in(MismatchKind::kNameOnlyInB, name);
    }
    SweepQuery query{
        .mode = options_.mode, .first_step = options_.first_step, .end_step = options_.end_step, .reductions = true};
    for (const std::string& name : names_a) {
      if (!std::ranges::binary_search(names_b, name)) {
        only_in(MismatchKind::kNameOnlyInA, name);
        continue;
      }
      TORNASOLE_CHECK(compare_steps(name));
      query.names.push_back(name);
    }
    if (query.names.empty()) return {};
    Status status;
    TORNASOLE_CHECK(a_.sweep(query, [&](const SweptValue& swept) {
      status = take(swept);
      return status.ok();
    }));
    TORNASOLE_CHECK(status);
    return compare_waiting();
  }
  std::int64_t steps_compared() const { return static_cast<std::int64_t>(steps_.size()); }

 private:
  Result<std::vector<std::string>> names_of(const Trial& trial) const {
    return trial.tensor_names({.mode = options_.mode, .regex = options_.regex});
  }
  void only_in(MismatchKind kind, const std::string& name) {
    table_.add_mismatch(kind, name, std::nullopt, "the other trial has no tensor of that name");
  }

  // What a step is known by in both trials.
  ModeStep key_of(const Trial& trial, std::int64_t global_step) const {
    const ModeStep global{Mode::kGlobal, global_step};
    return options_.align_global_steps ? global : trial.mode_step({global_step}).value_or(global);
  }
  std::set<ModeStep> keys_of(const Trial& trial, const TrialTensor& tensor) const {
    std::set<ModeStep> keys;
    for (const ModeStep& step : tensor.steps(Mode::kGlobal, StepFilter::kIncludingIncomplete)) {
      const auto mode_step = trial.mode_step({step.number});
      if (options_.mode != Mode::kGlobal && (!mode_step || mode_step->mode != options_.mode)) continue;
      if (is_in_range(step.number, options_)) keys.insert(key_of(trial, step.number));
    }
    return keys;
  }

  Status compare_steps(const std::string& name) {
    TORNASOLE_TRY(const TrialTensor in_a, a_.tensor(name));
    TORNASOLE_TRY(const TrialTensor in_b, b_.tensor(name));
    const std::set<ModeStep> keys_a = keys_of(a_, in_a);
    const std::set<ModeStep> keys_b = keys_of(b_, in_b);
    // The range is of A's steps: a step of B outside it may still be the counterpart of one inside.
    const auto is_known = [](const TrialTensor& tensor, const Trial& trial, const ModeStep& key) {
      const auto global = trial.global_step(key);
      return global && tensor.workers({Mode::kGlobal, global->number}).ok();
    };
    for (const ModeStep& key : keys_a) {
      if (!keys_b.contains(key) && !is_known(in_b, b_, key)) {
        table_.add_mismatch(MismatchKind::kStepsOnlyInA, name, key, "B did not save it at these steps");
      }
    }
    for (const ModeStep& key : keys_b) {
      if (!keys_a.contains(key) && !is_known(in_a, a_, key)) {
        table_.add_mismatch(MismatchKind::kStepsOnlyInB, name, key, "A did not save it at these steps");
      }
    }
    return {};
  }

  // The step of B, as a global one, and the worker that stand for a value of A.
  struct Counterpart {
    ModeStep global = {};
    std::string worker;
  };

  // A value of A that waits until that of B was read.
  struct Waiting {
    std::string name = {}, worker = {};
    GlobalStep global_step = {};
    ModeStep step = {};
    std::optional<Reduction> reduction = {};
    std::optional<Tensor> value = {};
    std::string error = {};
    std::optional<Counterpart> other = {};
    bool is_worker_missing = false;  // B has the step, of other workers
    bool has_value_b = false;
    std::optional<Result<Tensor>> value_b = {};
  };

  Status take(const SweptValue& swept) {
    Waiting one{.name = std::string(swept.name),
                .worker = std::string(swept.worker),
                .global_step = swept.global_step,
                .step = swept.step,
                .reduction = swept.reduction};
    find(&one);
    if (swept.value != nullptr) {
      if (one.other) one.value = Tensor(*swept.value);
      waiting_bytes_ += one.value ? one.value->bytes().size() : 0;
    } else {
      one.error = swept.error != nullptr ? swept.error->message : "it cannot be read";
    }
    waiting_.push_back(std::move(one));
    return waiting_.size() >= kMaxWaiting || waiting_bytes_ >= kMaxWaitingBytes ? compare_waiting() : Status();
  }

  void find(Waiting* one) {
    const ModeStep key = options_.align_global_steps ? ModeStep{Mode::kGlobal, one->global_step.number} : one->step;
    const auto global = b_.global_step(key);
    if (!global) return;
    const ModeStep step{Mode::kGlobal, global->number};
    const TrialTensor& in_b = tensor_of_b(one->name);
    const auto workers = in_b.workers(step);
    if (!workers.ok()) return;
    if (std::ranges::find(*workers, one->worker) != workers->end()) {
      one->other = Counterpart{step, one->worker};
    } else if (!only_worker_b_.empty()) {
      one->other = Counterpart{step, only_worker_b_};
    } else {
      one->is_worker_missing = true;
      return;
    }
    one->has_value_b = in_b.has_value(step, one->other->worker);
  }

  // Reads what B has of the waiting values, and holds them against each other in the order of A.
  Status compare_waiting() {
    std::vector<ValueQuery> queries;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting& one = waiting_[i];
      if (!one.value || repeats_the_value(one)) continue;
      queries.push_back({one.name, one.other->global, one.other->worker, one.reduction});
      places.push_back(i);
    }
    TORNASOLE_CHECK(b_.read(queries, [&](std::size_t place, Result<Tensor> value) {
      waiting_[places[place]].value_b.emplace(std::move(value));
      return true;
    }));
    for (const Waiting& one : waiting_) compare(one);
    waiting_.clear();
    waiting_bytes_ = 0;
    return {};
  }

  // Where both have the value itself, its reductions would only repeat what it says.
  bool repeats_the_value(const Waiting& one) const { return one.reduction && one.has_value_b && has_value_a(one); }

  const TrialTensor& tensor_of_b(std::string_view name) {
    auto found = tensors_b_.find(name);
    if (found == tensors_b_.end()) {
      auto tensor = b_.tensor(name);  // known to be there: the sweep asks for common names alone
      found = tensors_b_.emplace(std::string(name), std::move(*tensor)).first;
    }
    return found->second;
  }

  void compare(const Waiting& one) {
    if (one.is_worker_missing) {
      table_.add_mismatch(MismatchKind::kWorkers, one.name, one.step, fmt::format("B has no value of {}", one.worker));
    }
    if (!one.other || repeats_the_value(one)) return;
    if (!one.value) {
      unreadable(one, "A", one.error);
      return;
    }
    const Result<Tensor>& value_b = *one.value_b;
    if (!value_b.ok()) {
      if (is_stored_in_b(one)) {
        unreadable(one, "B", value_b.error().message);
      } else {
        note_other_form(one);
      }
      return;
    }
    steps_.insert(one.global_step.number);
    const ComparedPair pair{.tensor = one.name,
                            .global_step_a = one.global_step,
                            .global_step_b = {one.other->global.number},
                            .step = one.step,
                            .worker_a = one.worker,
                            .worker_b = one.other->worker,
                            .reduction = one.reduction};
    table_.add(pair, *one.value, *value_b);
  }

  bool has_value_a(const Waiting& one) const {
    const auto tensor = a_.tensor(one.name);
    return tensor.ok() && tensor->has_value({Mode::kGlobal, one.global_step.number}, one.worker);
  }

  static std::vector<Reduction> stored(const TrialTensor& tensor, ModeStep step, const std::string& worker) {
    auto found = tensor.stored_reductions(step, worker);
    return found.ok() ? std::move(*found) : std::vector<Reduction>();
  }
  bool is_stored_in_b(const Waiting& one) {
    if (!one.reduction) return one.has_value_b;
    const auto stored_b = stored(tensor_of_b(one.name), one.other->global, one.other->worker);
    return std::ranges::find(stored_b, *one.reduction) != stored_b.end();
  }

  void note_other_form(const Waiting& one) {
    if (!one.reduction) {
      // A has the value, B has not: what reductions both have is compared when the sweep meets them.
      const auto stored_a = stored(*a_.tensor(one.name), {Mode::kGlobal, one.global_step.number}, one.worker);
      const auto stored_b = stored(tensor_of_b(one.name), one.other->global, one.other->worker);
      if (std::ranges::find_first_of(stored_a, stored_b) != stored_a.end()) return;
    }
    const std::string what = one.reduction ? fmt::format("B has no stored {}", reduction_name(*one.reduction))
                                           : std::string("A has the value, B only other reductions or the shape");
    table_.add_mismatch(MismatchKind::kForm, one.name, one.step, what);
  }

  void unreadable(const Waiting& one, std::string_view where, std::string_view why) {
    table_.add_mismatch(MismatchKind::kUnreadable, one.name, one.step, fmt::format("in {}: {}", where, why));
  }

  const Trial& a_;
  const Trial& b_;
  const DiffOptions& options_;
  DiffTable& table_;
  std::string only_worker_b_;  // if each trial has just one worker
  std::map<std::string, TrialTensor, std::less<>> tensors_b_;
  std::set<std::int64_t> steps_;
  std::vector<Waiting> waiting_;
  std::uint64_t waiting_bytes_ = 0;  // of A; those of B take about as much again
};

}  // namespace

std::string_view mismatch_kind_name(MismatchKind kind) noexcept {
  switch (kind) {
    case MismatchKind::kNameOnlyInA: return "only in A";
    case MismatchKind::kNameOnlyInB: return "only in B";
    case MismatchKind::kStepsOnlyInA: return "steps only in A";
    case MismatchKind::kStepsOnlyInB: return "steps only in B";
    case MismatchKind::kWorkers: return "workers";
    case MismatchKind::kShape: return "shape";
    case MismatchKind::kDtype: return "dtype";
    case MismatchKind::kForm: return "form";
    case MismatchKind::kUnreadable: return "unreadable";
  }
  return "unknown";
}

Result<DiffReport> diff(const Trial& a, const Trial& b, const DiffOptions& options) {
  TORNASOLE_TRY(DiffTable table, DiffTable::make(options));
  Diff work(a, b, options, &table);
  TORNASOLE_CHECK(work.run());
  DiffReport report{.name_a = a.name(), .name_b = b.name(), .path_a = a.path(), .path_b = b.path()};
  report.steps_compared = work.steps_compared();
  TORNASOLE_CHECK(table.finish(&report));
  return report;
}

}  // namespace tornasole::tools
