// Questions that need no file: all of them answer from the columns.

#include <algorithm>

#include "base/errors.h"
#include "format/paths.h"
#include "trial/name_filter.h"
#include "trial/trial_errors.h"
#include "trial/trial_state.h"

namespace tornasole::trial {
namespace {

// Copies in sorted order. The names are far apart in memory, so most comparisons are made on eight bytes kept beside
// the place of each: those after the beginning that all names share.
std::vector<std::string> sorted_copies(const std::vector<const std::string*>& names) {
  if (names.empty()) return {};
  std::string_view shared = *names.front();
  for (const std::string* name : names) {
    const auto differs = std::ranges::mismatch(shared, *name);
    shared = shared.substr(0, static_cast<std::size_t>(differs.in1 - shared.begin()));
  }
  struct Keyed {
    std::uint64_t key = 0;
    const std::string* name = nullptr;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(names.size());
  for (const std::string* name : names) {
    std::uint64_t key = 0;
    for (std::size_t i = shared.size(); i < shared.size() + sizeof key; ++i) {
      key = key << 8U | (i < name->size() ? static_cast<unsigned char>((*name)[i]) : 0U);
    }
    keyed.push_back({key, name});
  }
  std::ranges::sort(keyed, [](const Keyed& left, const Keyed& right) {
    return left.key != right.key ? left.key < right.key : *left.name < *right.name;
  });
  std::vector<std::string> copies;
  copies.reserve(keyed.size());
  for (const Keyed& entry : keyed) copies.push_back(*entry.name);
  return copies;
}

}  // namespace

std::vector<std::string> TrialState::workers() const {
  std::vector<std::string> names;
  if (collections_.file_count() > 0) {
    for (const std::string& file_name : collections_.worker_file_names()) {
      names.push_back(format::decode_worker(file_name));
    }
  } else {
    for (std::uint32_t id = 0; id < columns_.worker_count(); ++id) names.push_back(columns_.worker_name(id));
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

std::vector<std::string> TrialState::workers_at(GlobalStep step) const {
  std::vector<std::string> names;
  for_each_part(columns_, {Mode::kGlobal, step.number},
                [&](const Part& part) { names.push_back(columns_.worker_name(part.worker)); });
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

StepFacts TrialState::step_facts(GlobalStep step, std::string_view worker) const {
  const StepRow* row = columns_.find_step(step.number);
  if (row == nullptr) return {};
  const std::string* chosen = nullptr;
  std::uint32_t last = kNoPart;  // of the chosen worker, that says anything
  for (std::uint32_t id = row->first_part; id != kNoPart; id = columns_.part(id).next) {
    const std::string& name = columns_.worker_name(columns_.part(id).worker);
    if (!worker.empty() && name != worker) continue;
    if (chosen != nullptr && name > *chosen) continue;
    if (chosen == nullptr || name < *chosen) last = kNoPart;
    chosen = &name;
    if (columns_.facts().has_any(id)) last = id;
  }
  return columns_.facts().get(last);
}

Result<std::vector<bool>> TrialState::names_to_search(const NameQuery& query) const {
  if (!query.step) return columns_.tensors_of_mode(query.mode);
  const ModeStep step = *query.step;
  if (query.mode != Mode::kGlobal && step.mode != query.mode) {
    return invalid_error("tensor_names: the step is of mode {} and the query of mode {}", mode_name(step.mode),
                         mode_name(query.mode));
  }
  return tensors_at(columns_, step);
}

Result<std::vector<std::string>> TrialState::tensor_names(const NameQuery& query) const {
  if (!query.regex.empty() && query.collection) {
    return invalid_error("tensor_names: a regex and the collection \"{}\" are given; only one of them is possible",
                         *query.collection);
  }
  TORNASOLE_TRY(const std::vector<bool> is_asked, names_to_search(query));
  std::optional<NameFilter> filter;
  if (!query.regex.empty()) {
    TORNASOLE_TRY(filter, NameFilter::by_patterns(query.regex));
  } else if (query.collection) {
    const auto found = collections_.all().find(*query.collection);
    if (found == collections_.all().end()) return std::vector<std::string>();
    TORNASOLE_TRY(filter, NameFilter::by_collection(found->second));
  }
  std::vector<const std::string*> names;
  for (std::uint32_t id = 0; id < is_asked.size(); ++id) {
    if (!is_asked[id]) continue;
    const std::string& name = columns_.tables().names.name(id);
    if (!filter || filter->contains(name)) names.push_back(&name);
  }
  if (filter && !filter->limit_reports().empty()) {
    const std::vector<std::string>& reports = filter->limit_reports();
    if (query.limit_reports != nullptr) {
      query.limit_reports->insert(query.limit_reports->end(), reports.begin(), reports.end());
    } else if (!query.regex.empty()) {
      return invalid_error("tensor_names: {}", reports.front());
    }
  }
  return sorted_copies(names);
}

Result<std::uint32_t> TrialState::find_tensor(std::string_view name) const {
  if (const auto id = columns_.find_tensor(name)) return *id;
  TORNASOLE_TRY(const std::vector<std::string> known, tensor_names({}));
  return tensor_unavailable_error(name, settings_.name, near_misses(name, known));
}

std::shared_ptr<const TensorParts> TrialState::tensor_parts() const {
  const std::lock_guard lock(cache_mutex_);
  if (!tensor_parts_ || !tensor_parts_->is_of(columns_)) tensor_parts_ = std::make_shared<TensorParts>(columns_);
  return tensor_parts_;
}

std::vector<ModeStep> TrialState::tensor_steps(std::uint32_t tensor, Mode mode, StepFilter filter) const {
  std::vector<std::int64_t> numbers;
  tensor_parts()->for_each(tensor, columns_, [&](const Part& part) {
    if (mode == Mode::kGlobal) numbers.push_back(part.global_step);
    if (mode != Mode::kGlobal && part.mode == mode) numbers.push_back(part.mode_step);
  });
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::vector<ModeStep> steps;
  for (const std::int64_t number : numbers) {
    if (is_shown(columns_, progress_, {mode, number}, filter)) steps.push_back({mode, number});
  }
  return steps;
}

// Why a tensor is not there at a step.
Error TrialState::step_error(std::uint32_t tensor, ModeStep step) const {
  const std::int64_t last = last_step(step.mode);
  const auto global = columns_.global_step(step);
  const bool is_step_known = global && columns_.find_step(*global) != nullptr;
  const StepState state = has_passed_step(columns_, progress_, step);
  if (state == StepState::kNotYetAvailable) {
    return step_not_yet_error(step, last, is_step_known ? "not all workers have written it" : "");
  }
  if (!is_step_known) {
    return step_unavailable_error(step, last, step.number > last ? "the run has ended" : "it was passed over");
  }
  return value_unavailable_error({.tensor = columns_.tables().names.name(tensor),
                                  .step = step,
                                  .reason = "not saved",
                                  .message = "it was not saved at this step"});
}

Result<std::uint32_t> TrialState::choose_worker(std::uint32_t tensor, ModeStep step, std::string_view worker) const {
  const std::vector<std::uint32_t> workers = workers_with(columns_, tensor, step);
  if (workers.empty()) return step_error(tensor, step);
  if (worker.empty()) return workers.front();
  std::vector<std::string> names;
  for (const std::uint32_t id : workers) {
    if (columns_.worker_name(id) == worker) return id;
    names.push_back(columns_.worker_name(id));
  }
  return invalid_worker_error(worker, columns_.tables().names.name(tensor), step, names);
}

}  // namespace tornasole::trial
