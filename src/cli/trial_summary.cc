#include "cli/trial_summary.h"

#include "base/errors.h"
#include "cli/progress_bar.h"
#include "tools/run_health.h"

namespace tornasole::cli {
namespace {

StepsSummary steps_of(const Trial& trial, Mode mode) {
  const auto complete = trial.steps(mode);
  const auto known = trial.steps(mode, StepFilter::kIncludingIncomplete);
  const auto partial = trial.steps(mode, StepFilter::kPartial);
  StepsSummary summary{.mode = mode, .count = static_cast<std::int64_t>(complete.size())};
  if (!complete.empty()) {
    summary.first = complete.front().number;
    summary.last = complete.back().number;
  }
  summary.incomplete = static_cast<std::int64_t>(known.size() - complete.size());
  summary.partial = static_cast<std::int64_t>(partial.size());
  return summary;
}

// The last value of the first worker: what it is, without its numbers.
void add_details(const TrialTensor& tensor, ModeStep step, TensorSummary* summary) {
  if (auto value = tensor.value(step)) {
    summary->form = "value";
    summary->dtype = dtype_name(value->dtype());
    summary->shape = value->shape().to_string();
    return;
  }
  if (auto shape = tensor.shape(step)) summary->shape = shape->to_string();
  const auto reductions = tensor.reduction_values(step);
  summary->form = reductions && !reductions->empty() ? "reductions" : !summary->shape.empty() ? "shape" : "damaged";
}

}  // namespace

Result<TrialSummary> summarise(const Trial& trial, const SummaryWish& wish) {
  TrialSummary summary{.path = wish.path, .name = trial.name(), .status = trial.run_status()};
  summary.workers = trial.workers();
  summary.steps.push_back(steps_of(trial, Mode::kGlobal));
  for (const Mode mode : trial.modes()) summary.steps.push_back(steps_of(trial, mode));
  for (const auto& [name, collection] : trial.collections()) {
    const auto members = trial.tensor_names({.collection = name});
    summary.collections.push_back(
        {name, members ? static_cast<std::int64_t>(members->size()) : 0, collection.include_regex});
  }
  NameQuery query;
  if (!wish.pattern.empty()) query.regex.push_back(wish.pattern);
  TORNASOLE_TRY(const std::vector<std::string> names, trial.tensor_names(query));
  ProgressBar progress("reading", names.size());
  for (const std::string& name : names) {
    TORNASOLE_TRY(const TrialTensor tensor, trial.tensor(name));
    TensorSummary row{.name = name};
    const auto steps = tensor.steps(Mode::kGlobal, StepFilter::kIncludingIncomplete);
    row.steps = static_cast<std::int64_t>(steps.size());
    if (!steps.empty()) {
      row.first = steps.front().number;
      row.last = steps.back().number;
      if (wish.details) add_details(tensor, steps.back(), &row);
    }
    summary.tensors.push_back(std::move(row));
    progress.update(summary.tensors.size());
  }
  summary.damaged_files = static_cast<std::int64_t>(trial.damage().size());
  summary.disk = disk_use_of(trial.path());
  if (trial.path().starts_with("s3://")) {
    if (const auto health = tools::read_run_health(trial.path())) summary.requests = health->requests;
  }
  return summary;
}

}  // namespace tornasole::cli
