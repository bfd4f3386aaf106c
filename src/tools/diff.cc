// 1. Names and steps that only one trial has are listed from the two indices.
// 2. A is swept in execution order; each value is held against its counterpart, read from B.

#include "tools/diff.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/errors.h"
#include "tools/diff_table.h"

namespace tornasole::tools {
namespace {

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
    return a_.sweep(query, [&](const SweptValue& swept) {
      compare(swept);
      return true;
    });
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

  // The step of B, as a global one, and the worker that stand for a value of A; nothing if there is none.
  struct Counterpart {
    ModeStep global = {};
    std::string worker;
  };
  std::optional<Counterpart> find(const TrialTensor& in_b, const SweptValue& swept) {
    const ModeStep key = options_.align_global_steps ? ModeStep{Mode::kGlobal, swept.global_step.number} : swept.step;
    const auto global = b_.global_step(key);
    if (!global) return std::nullopt;
    const ModeStep step{Mode::kGlobal, global->number};
    const auto workers = in_b.workers(step);
    if (!workers.ok()) return std::nullopt;
    if (std::ranges::find(*workers, swept.worker) != workers->end())
      return Counterpart{step, std::string(swept.worker)};
    if (!only_worker_b_.empty()) return Counterpart{step, only_worker_b_};
    table_.add_mismatch(MismatchKind::kWorkers, swept.name, swept.step,
                        fmt::format("B has no value of {}", swept.worker));
    return std::nullopt;
  }

  const TrialTensor& tensor_of_b(std::string_view name) {
    auto found = tensors_b_.find(name);
    if (found == tensors_b_.end()) {
      auto tensor = b_.tensor(name);  // known to be there: the sweep asks for common names alone
      found = tensors_b_.emplace(std::string(name), std::move(*tensor)).first;
    }
    return found->second;
  }

  void compare(const SweptValue& swept) {
    const TrialTensor& in_b = tensor_of_b(swept.name);
    const auto other = find(in_b, swept);
    if (!other) return;
    const bool has_value_b = in_b.has_value(other->global, other->worker);
    // Where both have the value itself, its reductions would only repeat what it says.
    if (swept.reduction && has_value_b && has_value_a(swept)) return;
    if (swept.value == nullptr) {
      unreadable(swept, "A", swept.error != nullptr ? swept.error->message : "it cannot be read");
      return;
    }
    auto value_b =
        swept.reduction ? stored_reduction(in_b, *other, *swept.reduction) : in_b.value(other->global, other->worker);
    if (!value_b.ok()) {
      if (!swept.reduction && has_value_b) {
        unreadable(swept, "B", value_b.error().message);
      } else {
        note_other_form(swept, in_b, *other);
      }
      return;
    }
    steps_.insert(swept.global_step.number);
    const ComparedPair pair{.tensor = swept.name,
                            .global_step_a = swept.global_step,
                            .global_step_b = {other->global.number},
                            .step = swept.step,
                            .worker_a = swept.worker,
                            .worker_b = other->worker,
                            .reduction = swept.reduction};
    table_.add(pair, Tensor(*swept.value), *value_b);
  }

  bool has_value_a(const SweptValue& swept) const {
    const auto tensor = a_.tensor(swept.name);
    return tensor.ok() && tensor->has_value({Mode::kGlobal, swept.global_step.number}, swept.worker);
  }

  static Result<Tensor> stored_reduction(const TrialTensor& tensor, const Counterpart& place, Reduction reduction) {
    TORNASOLE_TRY(auto stored, tensor.reduction_values(place.global, place.worker));
    const auto found = stored.find(reduction);
    if (found == stored.end()) return not_found_error("no stored reduction {}", reduction_name(reduction));
    return std::move(found->second);
  }

  void note_other_form(const SweptValue& swept, const TrialTensor& in_b, const Counterpart& other) {
    if (!swept.reduction) {
      // A has the value, B has not: what reductions both have is compared when the sweep meets them.
      const auto reductions_a =
          a_.tensor(swept.name)->reduction_values({Mode::kGlobal, swept.global_step.number}, swept.worker);
      const auto reductions_b = in_b.reduction_values(other.global, other.worker);
      const bool share_any =
          reductions_a.ok() && reductions_b.ok() &&
          std::ranges::any_of(*reductions_a, [&](const auto& one) { return reductions_b->contains(one.first); });
      if (share_any) return;
    }
    const std::string what = swept.reduction ? fmt::format("B has no stored {}", reduction_name(*swept.reduction))
                                             : std::string("A has the value, B only other reductions or the shape");
    table_.add_mismatch(MismatchKind::kForm, swept.name, swept.step, what);
  }

  void unreadable(const SweptValue& swept, std::string_view where, std::string_view why) {
    table_.add_mismatch(MismatchKind::kUnreadable, swept.name, swept.step, fmt::format("in {}: {}", where, why));
  }

  const Trial& a_;
  const Trial& b_;
  const DiffOptions& options_;
  DiffTable& table_;
  std::string only_worker_b_;  // if each trial has just one worker
  std::map<std::string, TrialTensor, std::less<>> tensors_b_;
  std::set<std::int64_t> steps_;
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
  table.finish(&report);
  return report;
}

}  // namespace tornasole::tools
