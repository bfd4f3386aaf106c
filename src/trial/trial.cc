// The public face of TrialState. Nothing leaves it as an exception but what a getter cannot allocate.

#include "tornasole/trial.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/errors.h"
#include "trial/open_trial.h"
#include "trial/result_boundary.h"
#include "trial/trial_state.h"

namespace tornasole {
namespace {

// The number after the last underscore; 0 if there is none.
std::int64_t number_at_end(std::string_view name) {
  const std::string_view digits = name.substr(name.rfind('_') + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size() ? number : 0;
}

Result<std::vector<Tensor>> values_by_number(const Trial& trial, NameQuery query, ModeStep step) {
  query.step = step;
  TORNASOLE_TRY(std::vector<std::string> names, trial.tensor_names(query));
  std::ranges::stable_sort(names, {}, [](const std::string& name) { return number_at_end(name); });
  std::vector<Tensor> values;
  for (const std::string& name : names) {
    TORNASOLE_TRY(Tensor value, trial.tensor(name, step));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

namespace trial {

Trial TrialAccess::make(std::unique_ptr<TrialState> state) { return Trial(std::move(state)); }

Result<Trial> open_trial(const TrialOptions& options, const config::Environment& environment,
                         TrialDependencies dependencies) {
  return without_exceptions([&]() -> Result<Trial> {
    TORNASOLE_TRY(TrialSettings settings, make_settings(options, environment));
    TORNASOLE_TRY(auto state, TrialState::open(std::move(settings), std::move(dependencies)));
    return TrialAccess::make(std::move(state));
  });
}

}  // namespace trial

Trial::Trial(std::unique_ptr<trial::TrialState> state) : state_(std::move(state)) {}
Trial::Trial(Trial&&) noexcept = default;
Trial& Trial::operator=(Trial&&) noexcept = default;
Trial::~Trial() = default;

Result<Trial> Trial::open(const TrialOptions& options) {
  return trial::open_trial(options, config::Environment::from_process(), {});
}

Status Trial::refresh() {
  return trial::without_exceptions([&] { return state_->refresh(); });
}
Status Trial::wait_for_steps(std::span<const ModeStep> steps) {
  return trial::without_exceptions([&] { return state_->wait_for_steps(steps); });
}
Result<Tensor> Trial::wait_for_value(std::string_view name, ModeStep step, std::string_view worker) {
  return trial::without_exceptions([&] { return state_->wait_for_value(name, step, worker); });
}
Status Trial::wait_for_file(std::string_view name, ModeStep step, std::string_view worker) {
  return trial::without_exceptions([&] { return state_->wait_for_file(name, step, worker); });
}
Status Trial::set_waiting(std::optional<double> timeout_s, double poll_s) {
  return state_->set_waiting(timeout_s, poll_s);
}

const std::string& Trial::name() const noexcept { return state_->settings().name; }
const std::string& Trial::path() const noexcept { return state_->settings().path; }
std::vector<std::string> Trial::workers() const { return state_->workers(); }
std::int64_t Trial::num_workers() const noexcept { return state_->progress().num_workers; }

std::vector<Mode> Trial::modes() const {
  std::vector<Mode> modes;
  for (const Mode mode : kAllModes) {
    if (mode != Mode::kGlobal && state_->columns().has_mode(mode)) modes.push_back(mode);
  }
  return modes;
}

std::vector<ModeStep> Trial::steps(Mode mode, StepFilter filter) const {
  return trial::list_steps(state_->columns(), state_->progress(), mode, filter);
}

std::optional<ModeStep> Trial::mode_step(GlobalStep step) const {
  const trial::StepRow* row = state_->columns().find_step(step.number);
  if (row == nullptr) return std::nullopt;
  return ModeStep{row->mode, row->mode_step};
}

std::optional<GlobalStep> Trial::global_step(ModeStep step) const {
  const auto found = state_->columns().global_step(step);
  return found ? std::optional(GlobalStep{*found}) : std::nullopt;
}

StepState Trial::has_passed_step(ModeStep step) const {
  return trial::has_passed_step(state_->columns(), state_->progress(), step);
}
std::vector<std::string> Trial::workers_at(GlobalStep step) const { return state_->workers_at(step); }

Result<std::vector<std::string>> Trial::tensor_names(const NameQuery& query) const {
  return trial::without_exceptions([&] { return state_->tensor_names(query); });
}
bool Trial::has_tensor(std::string_view name) const { return state_->columns().find_tensor(name).has_value(); }

Result<TrialTensor> Trial::tensor(std::string_view name) const {
  return trial::without_exceptions([&]() -> Result<TrialTensor> {
    TORNASOLE_TRY(const std::uint32_t id, state_->find_tensor(name));
    return TrialTensor(state_.get(), id);
  });
}

Result<Tensor> Trial::tensor(std::string_view name, ModeStep step, std::string_view worker) const {
  TORNASOLE_TRY(const TrialTensor found, tensor(name));
  return found.value(step, worker);
}

Result<std::vector<Tensor>> Trial::inputs(ModeStep step) const {
  return trial::without_exceptions([&] { return values_by_number(*this, {.collection = "inputs"}, step); });
}
Result<std::vector<Tensor>> Trial::labels(ModeStep step) const {
  return trial::without_exceptions([&] { return values_by_number(*this, {.regex = {"labels*"}}, step); });
}
Result<std::vector<Tensor>> Trial::predictions(ModeStep step) const {
  return trial::without_exceptions([&] { return values_by_number(*this, {.regex = {"predictions*"}}, step); });
}

const std::map<std::string, TrialCollection, std::less<>>& Trial::collections() const {
  return std::as_const(*state_).collections().all();
}
TrialCollection& Trial::collection(std::string_view name) { return state_->collections().get(name); }

const std::map<std::string, StoredModel, std::less<>>& Trial::models() const noexcept { return state_->models().all(); }
StepFacts Trial::step_facts(GlobalStep step, std::string_view worker) const { return state_->step_facts(step, worker); }

Status Trial::sweep(const SweepQuery& query, const std::function<bool(const SweptValue&)>& callback) const {
  return trial::without_exceptions([&] { return state_->sweep(query, callback); });
}

Status Trial::read(std::span<const ValueQuery> queries,
                   const std::function<bool(std::size_t place, Result<Tensor> value)>& callback) const {
  return trial::without_exceptions([&] { return state_->read(queries, callback); });
}

bool Trial::loaded_all_steps() const noexcept { return state_->progress().loaded_all_steps; }
std::int64_t Trial::last_complete_step() const noexcept { return state_->progress().last_complete_step; }
const std::string& Trial::last_index_token() const noexcept { return state_->discoverer().token(); }
RunStatus Trial::run_status() const { return state_->watch().status(); }
const std::vector<Damage>& Trial::damage() const noexcept { return state_->damage(); }
std::int64_t Trial::damage_count() const noexcept { return state_->damage_count(); }
std::int64_t Trial::index_bytes() const noexcept { return state_->columns().size_bytes(); }

}  // namespace tornasole
