// Values of one tensor, read from their records.

#include <algorithm>
#include <array>
#include <charconv>

#include "base/errors.h"
#include "format/paths.h"
#include "reduce/reduce.h"
#include "trial/tensor_view.h"
#include "trial/trial_errors.h"
#include "trial/trial_state.h"
#include "trial/value_reader.h"

namespace tornasole::trial {
namespace {

// "events/000000000007" -> 7.
std::optional<std::int64_t> step_of_directory(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace

// Nothing more comes after the end, and a worker that has written a later step has left this file out.
bool TrialState::may_file_come(const Part& part) const {
  if (progress_.loaded_all_steps || watch_.is_over()) return false;
  const auto directories = store_->list("events", /*recursive=*/false);
  if (!directories.ok()) return true;
  const std::string& worker = columns_.worker_file_name(part.worker);
  for (auto at = directories->rbegin(); at != directories->rend(); ++at) {
    const auto step = step_of_directory(at->path);
    if (!at->status.is_directory || !step || *step <= part.global_step) continue;
    if (store_->status(format::event_path(*step, worker)).ok()) return false;
  }
  return true;
}

bool TrialState::is_file_to_come(std::uint32_t tensor, ModeStep step, std::uint32_t worker) const {
  bool is_to_come = false;
  for_each_part(columns_, step, [&](const Part& part) {
    if (part.worker != worker || !columns_.tables().layouts.has_tensor(part.layout, tensor)) return;
    const auto file = store_->status(columns_.event_path(part));
    is_to_come |= !file.ok() && file.error().code == ErrorCode::kNotFound && may_file_come(part);
  });
  return is_to_come;
}

// What the user is told about a record that could not be read.
Error TrialState::explain(const Error& error, Series series, ModeStep step, const Part& part) const {
  const bool is_missing = error.code == ErrorCode::kNotFound;
  return explain(error, series, step, part, is_missing && may_file_come(part));
}

Error TrialState::explain(const Error& error, Series series, ModeStep step, const Part& part, bool may_come) const {
  UnavailableValue value{.tensor = columns_.tables().names.name(tensor_of(series)),
                         .step = step,
                         .worker = columns_.worker_name(part.worker)};
  if (error.code == ErrorCode::kNotFound) {
    value.reason = "missing file";
    value.may_come = may_come;
    value.message =
        fmt::format("its event file {} is {}", columns_.event_path(part), value.may_come ? "not there yet" : "missing");
  } else if (error.code == ErrorCode::kCorrupt) {
    value.reason = "damaged";
    value.message = error.message;
  } else {
    return error;
  }
  return value_unavailable_error(value);
}

Result<Tensor> TrialState::series_value(Series series, ModeStep step, const Place& place) const {
  if (settings_.cache) {
    const std::lock_guard lock(cache_mutex_);
    if (const auto found = cache_.find(place.location); found != cache_.end()) return found->second;
  }
  const std::string path = columns_.event_path(*place.part);
  const auto bytes = read_record(*store_, path, *place.location);
  if (!bytes.ok()) return explain(bytes.error(), series, step, *place.part);
  auto value = decode_value(*bytes, *place.location, path);
  if (!value.ok()) return explain(value.error(), series, step, *place.part);
  if (settings_.cache) {
    const std::lock_guard lock(cache_mutex_);
    cache_.try_emplace(place.location, *value);
  }
  return value;
}

Result<Tensor> TrialState::value(std::uint32_t tensor, ModeStep step, std::string_view worker) const {
  TORNASOLE_TRY(const std::uint32_t chosen, choose_worker(tensor, step, worker));
  const Series series = series_of(tensor, kValueSeries);
  const Place place = find_place(columns_, series, step, chosen);
  if (place.location != nullptr) return series_value(series, step, place);
  const bool is_reduced = has_reductions(columns_, tensor, step, chosen);
  return value_unavailable_error(
      {.tensor = columns_.tables().names.name(tensor),
       .step = step,
       .worker = columns_.worker_name(chosen),
       .reason = is_reduced ? "only reductions" : "only a shape",
       .message = is_reduced ? "only reductions of it were saved; ask for a reduction" : "only its shape was saved",
       .has_reductions = is_reduced});
}

Result<Shape> TrialState::shape(std::uint32_t tensor, ModeStep step, std::string_view worker) const {
  TORNASOLE_TRY(const std::uint32_t chosen, choose_worker(tensor, step, worker));
  const Place saved = find_place(columns_, series_of(tensor, kShapeSeries), step, chosen);
  if (saved.location != nullptr) {
    return Shape(columns_.tables().shapes.dims(static_cast<std::uint32_t>(saved.location->offset())));
  }
  const Series series = series_of(tensor, kValueSeries);
  const Place place = find_place(columns_, series, step, chosen);
  if (place.location == nullptr) return shape_unavailable_error(columns_.tables().names.name(tensor), step);
  TORNASOLE_TRY(const Tensor value, series_value(series, step, place));
  return value.shape();
}

Result<Tensor> TrialState::reduction(std::uint32_t tensor, ModeStep step, Reduction reduction,
                                     std::string_view worker) const {
  TORNASOLE_TRY(const std::uint32_t chosen, choose_worker(tensor, step, worker));
  const Series series = series_of(tensor, reduction);
  const Place place = find_place(columns_, series, step, chosen);
  if (place.location != nullptr) return series_value(series, step, place);
  TORNASOLE_TRY(const Tensor full, value(tensor, step, columns_.worker_name(chosen)));
  std::vector<std::string_view> texts;
  const std::array<Reduction, 1> wanted = {reduction};
  const reduce::Reduced reduced = reduce::reduce(view_of(full, &texts), wanted);
  if (reduced.values.empty()) {
    return invalid_error("{} is not defined for tensor \"{}\" at {}, of type {} and shape {}",
                         reduction_name(reduction), columns_.tables().names.name(tensor), describe(step),
                         dtype_name(full.dtype()), full.shape().to_string());
  }
  return reduced.values.front().value.to_tensor();
}

std::vector<WantedValue> TrialState::wanted_of_tensor(std::uint32_t tensor, Mode mode, std::string_view worker,
                                                      std::vector<ModeStep>* steps,
                                                      std::vector<std::pair<ModeStep, Error>>* missing) const {
  std::vector<WantedValue> wanted;
  const Series series = series_of(tensor, kValueSeries);
  for (const ModeStep step : tensor_steps(tensor, mode, StepFilter::kComplete)) {
    const auto chosen = choose_worker(tensor, step, worker);
    const Place place = chosen.ok() ? find_place(columns_, series, step, *chosen) : Place();
    if (place.location == nullptr) {
      if (missing != nullptr) missing->emplace_back(step, value(tensor, step, worker).error());
      continue;
    }
    wanted.push_back(
        {columns_.part_id(*place.part), static_cast<std::uint32_t>(place.location - place.part->locations)});
    steps->push_back(step);
  }
  return wanted;
}

Result<std::map<std::int64_t, Tensor>> TrialState::values(std::uint32_t tensor, Mode mode, std::string_view worker,
                                                          std::vector<std::pair<ModeStep, Error>>* missing) const {
  std::vector<ModeStep> steps;
  const std::vector<WantedValue> wanted = wanted_of_tensor(tensor, mode, worker, &steps, missing);
  std::map<std::int64_t, Tensor> values;
  std::size_t at = 0;
  read_values(*store_, columns_, wanted, {.threads = threads_}, [&](const WantedValue& one, Result<ReadValue> read) {
    const ModeStep step = steps[at++];
    if (read.ok()) {
      values.emplace_hint(values.end(), step.number, std::move(*read->value));
    } else if (missing != nullptr) {
      missing->emplace_back(step,
                            explain(read.error(), series_of(tensor, kValueSeries), step, columns_.part(one.part)));
    }
    return true;
  });
  return values;
}

}  // namespace tornasole::trial
