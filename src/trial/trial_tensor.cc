#include <algorithm>

#include "base/errors.h"
#include "reduce/reduce.h"
#include "tornasole/trial.h"
#include "trial/result_boundary.h"
#include "trial/trial_errors.h"
#include "trial/trial_state.h"

namespace tornasole {

const std::string& TrialTensor::name() const noexcept { return state_->columns().tables().names.name(id_); }

const std::string& TrialTensor::original_name() const noexcept {
  const trial::IndexTables& tables = state_->columns().tables();
  return tables.original_names.get(id_, tables.names);
}

std::vector<ModeStep> TrialTensor::steps(Mode mode, StepFilter filter) const {
  return state_->tensor_steps(id_, mode, filter);
}

std::vector<ModeStep> TrialTensor::prev_steps(ModeStep step, std::size_t n) const {
  std::vector<ModeStep> found = steps(step.mode);
  std::erase_if(found, [&](ModeStep other) { return other.number > step.number; });
  if (n != 0 && found.size() > n) found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(n));
  return found;
}

Result<std::vector<std::string>> TrialTensor::workers(ModeStep step) const {
  return trial::without_exceptions([&]() -> Result<std::vector<std::string>> {
    std::vector<std::string> names;
    for (const std::uint32_t worker : trial::workers_with(state_->columns(), id_, step)) {
      names.push_back(state_->columns().worker_name(worker));
    }
    if (!names.empty()) return names;
    return trial::value_unavailable_error(
        {.tensor = name(), .step = step, .reason = "not saved", .message = "no worker saved it at this step"});
  });
}

bool TrialTensor::has_value(ModeStep step, std::string_view worker) const {
  const auto chosen = state_->choose_worker(id_, step, worker);
  if (!chosen.ok()) return false;
  const trial::Series series = trial::series_of(id_, trial::kValueSeries);
  return trial::find_place(state_->columns(), series, step, *chosen).location != nullptr;
}

Result<Tensor> TrialTensor::value(ModeStep step, std::string_view worker) const {
  return trial::without_exceptions([&] { return state_->value(id_, step, worker); });
}

Result<std::map<std::int64_t, Tensor>> TrialTensor::values(Mode mode, std::string_view worker,
                                                           std::vector<std::pair<ModeStep, Error>>* missing) const {
  return trial::without_exceptions([&] { return state_->values(id_, mode, worker, missing); });
}

Result<Shape> TrialTensor::shape(ModeStep step, std::string_view worker) const {
  return trial::without_exceptions([&] { return state_->shape(id_, step, worker); });
}

Result<std::map<std::int64_t, Shape>> TrialTensor::shapes(Mode mode, std::string_view worker) const {
  return trial::without_exceptions([&]() -> Result<std::map<std::int64_t, Shape>> {
    std::map<std::int64_t, Shape> shapes;
    for (const ModeStep step : steps(mode)) {
      if (auto found = state_->shape(id_, step, worker); found.ok()) shapes.emplace(step.number, std::move(*found));
    }
    return shapes;
  });
}

Result<Tensor> TrialTensor::reduction_tensor(ModeStep step, Reduction reduction, std::string_view worker) const {
  return trial::without_exceptions([&] { return state_->reduction(id_, step, reduction, worker); });
}

Result<double> TrialTensor::reduction_value(ModeStep step, Reduction reduction, std::string_view worker) const {
  TORNASOLE_TRY(const Tensor reduced, reduction_tensor(step, reduction, worker));
  if (const auto number = reduce::to_double(reduced)) return *number;
  return trial::value_unavailable_error(
      {.tensor = name(),
       .step = step,
       .reason = "no number",
       .message = fmt::format("{} is no single real number but {} of shape {}", reduction_name(reduction),
                              dtype_name(reduced.dtype()), reduced.shape().to_string())});
}

Result<std::vector<Reduction>> TrialTensor::stored_reductions(ModeStep step, std::string_view worker) const {
  return trial::without_exceptions([&]() -> Result<std::vector<Reduction>> {
    TORNASOLE_TRY(const std::uint32_t chosen, state_->choose_worker(id_, step, worker));
    std::vector<Reduction> reductions;
    for (const trial::Series series : trial::stored_reductions(state_->columns(), id_, step, chosen)) {
      reductions.push_back(*trial::reduction_of(series));
    }
    return reductions;
  });
}

Result<std::map<Reduction, Tensor>> TrialTensor::reduction_values(ModeStep step, std::string_view worker) const {
  return trial::without_exceptions([&]() -> Result<std::map<Reduction, Tensor>> {
    TORNASOLE_TRY(const std::uint32_t chosen, state_->choose_worker(id_, step, worker));
    std::map<Reduction, Tensor> values;
    for (const trial::Series series : trial::stored_reductions(state_->columns(), id_, step, chosen)) {
      const trial::Place place = trial::find_place(state_->columns(), series, step, chosen);
      TORNASOLE_TRY(Tensor value, state_->series_value(series, step, place));
      values.emplace(*trial::reduction_of(series), std::move(value));
    }
    return values;
  });
}

}  // namespace tornasole
