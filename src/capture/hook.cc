// The public Hook: each call handed to HookState, which wires the stages.

#include "tornasole/hook.h"
#include "tornasole/front_end.h"

#include <exception>
#include <utility>

#include "base/errors.h"
#include "capture/hook_state.h"
#include "capture/open_hook.h"
#include "config/config.h"
#include "config/environment.h"

namespace tornasole {

using capture::HookState;

// ---- opening

namespace capture {

Result<std::unique_ptr<HookState>> open_hook_state(HookOptions options, HookDependencies dependencies) {
  const config::Environment environment = config::Environment::from_process();
  TORNASOLE_TRY(config::Config config, config::make_config(options, environment));
  return HookState::open(std::move(config), std::move(options.log), std::move(dependencies));
}

Result<Hook> open_hook(HookOptions options, HookDependencies dependencies) {
  try {
    TORNASOLE_TRY(auto state, open_hook_state(std::move(options), std::move(dependencies)));
    return HookAccess::make(std::move(state));
  } catch (...) {
    return error_from_current_exception();
  }
}

Hook HookAccess::make(std::unique_ptr<HookState> state) { return Hook(std::move(state)); }
HookState& HookAccess::state_of(const Hook& hook) noexcept { return *hook.state_; }

}  // namespace capture

Result<Hook> Hook::open(HookOptions options) { return capture::open_hook(std::move(options), {}); }

Result<Hook> Hook::open_file(const std::string& path, HookOptions options) {
  try {
    const config::Environment environment = config::Environment::from_process();
    const std::string file = config::find_config_file(path, environment);
    TORNASOLE_TRY(const std::string text, config::read_config_file(file, environment));
    TORNASOLE_TRY(config::Config config, config::parse_config(text, file, options, environment));
    TORNASOLE_TRY(auto state, HookState::open(std::move(config), std::move(options.log), {}));
    return Hook(std::move(state));
  } catch (...) {
    return error_from_current_exception();
  }
}

Hook::Hook(std::unique_ptr<HookState> state) : state_(std::move(state)) {}
Hook::Hook(Hook&&) noexcept = default;
Hook& Hook::operator=(Hook&& other) noexcept {
  Hook old(std::move(*this));  // closed when it goes
  state_ = std::move(other.state_);
  return *this;
}
Hook::~Hook() {
  if (!state_) return;
  const bool is_unwinding = std::uncaught_exceptions() > state_->exceptions_at_open();
  const Status closed = is_unwinding ? fail("an exception ended the training") : close();
  if (!closed.ok()) return;  // reported and counted when it happened
}

// ---- steps

StepScope Hook::begin_step(Mode mode) noexcept { return make_scope(mode, std::nullopt); }
StepScope Hook::begin_step() noexcept { return make_scope(std::nullopt, std::nullopt); }
StepScope Hook::begin_step(Mode mode, GlobalStep at) noexcept { return make_scope(mode, at.number); }

StepScope Hook::make_scope(std::optional<Mode> mode, std::optional<std::int64_t> at) noexcept {
  StepScope scope;
  if (state_->listeners().is_any()) {
    state_->listeners().open_step_ends();
    if (!mode) mode = state_->listeners().mode();
  }
  const HookState::Begun begun = state_->begin_step(mode, at);
  if (begun.id.serial == 0) return scope;
  scope.state_ = state_.get();
  scope.serial_ = begun.id.serial;
  scope.mode_ = begun.id.mode;
  scope.mode_step_ = begun.id.mode_step;
  scope.global_step_ = begun.id.global_step;
  scope.due_ = begun.is_due;
  scope.due_set_ = begun.due_set;
  scope.exceptions_ = std::uncaught_exceptions();
  if (scope.due_ && state_->listeners().is_any()) state_->listeners().step_began(begun.id.serial, scope);
  return scope;
}

std::int64_t idle_steps(const Hook& hook) noexcept {
  capture::HookState& state = capture::HookAccess::state_of(hook);
  return state.listeners().is_any() ? 0 : state.idle_steps();
}

bool repeat_step(const Hook& hook, StepScope& step, const StepFacts& facts) noexcept {
  capture::HookState& state = capture::HookAccess::state_of(hook);
  if (step.state_ != &state || state.listeners().is_any()) return false;
  const HookState::Begun begun = state.repeat_step(step.serial_, facts);
  if (begun.id.serial == 0) return false;
  step.serial_ = begun.id.serial;
  step.mode_step_ = begun.id.mode_step;
  step.global_step_ = begun.id.global_step;
  return true;
}

bool skip_input(const Hook& hook, ModuleName& module) noexcept {
  return capture::HookAccess::state_of(hook).skip_numbered(module, /*is_input=*/true);
}
bool skip_output(const Hook& hook, ModuleName& module) noexcept {
  return capture::HookAccess::state_of(hook).skip_numbered(module, /*is_input=*/false);
}

StepListener::~StepListener() = default;

StepScope::StepScope(StepScope&& other) noexcept : StepRef(other), exceptions_(other.exceptions_) {
  other.state_ = nullptr;
  other.due_ = false;
}

StepScope::~StepScope() { end_as(std::uncaught_exceptions() > exceptions_); }
void StepScope::end() noexcept { end_as(/*is_partial=*/false); }
void StepScope::end_partial() noexcept { end_as(/*is_partial=*/true); }

void StepScope::end_as(bool is_partial) noexcept {
  if (state_ == nullptr) return;
  if (due_) state_->listeners().step_ends(serial_);
  state_->end_step(serial_, is_partial);
  state_ = nullptr;
  due_ = false;
}

void StepRef::save_view(std::string_view name, const TensorView& tensor) const noexcept {
  state_->save(serial_, name, tensor);
}

void StepRef::save_numbered(std::string_view module, bool is_input, const TensorView& tensor) const noexcept {
  state_->save_numbered(serial_, module, is_input, tensor);
}

void StepRef::save_view(TensorName& name, const TensorView& tensor) const noexcept {
  state_->save(serial_, name, tensor);
}

void StepRef::save_numbered(ModuleName& module, bool is_input, const TensorView& tensor) const noexcept {
  state_->save_numbered(serial_, module, is_input, tensor);
}

void StepRef::save_scalar(std::string_view name, double value) const noexcept {
  if (state_ != nullptr) state_->save_scalar(name, value, {});
}
void StepRef::set_facts(const StepFacts& facts) const noexcept {
  if (state_ != nullptr) state_->set_facts(facts);
}
void StepRef::describe_model(const ModelDescription& model) const noexcept {
  if (state_ != nullptr) state_->describe_model(model);
}
void StepRef::log(LogLevel level, std::string_view message) const noexcept {
  if (state_ != nullptr) state_->log(level, message);
}
std::vector<std::string> StepRef::saved_collections() const {
  return state_ == nullptr ? std::vector<std::string>() : state_->saved_collections(/*only_due=*/false);
}

bool StepRef::wants(std::string_view name) const noexcept { return due_ && state_->wants(serial_, name); }

void StepScope::make_due(std::span<const std::string_view> collections) noexcept {
  if (state_ == nullptr) return;
  const bool was_due = due_;
  const HookState::Begun begun = state_->make_due(serial_, collections);
  if (begun.id.serial == 0) return;
  due_ = begun.is_due;
  due_set_ = begun.due_set;
  if (due_ && !was_due && state_->listeners().is_any()) state_->listeners().step_began(serial_, *this);
}

void Hook::set_mode(Mode mode) noexcept {
  if (state_->listeners().is_any() && mode != state_->mode()) state_->listeners().open_step_ends();
  state_->set_mode(mode);
}
Status Hook::prepare() { return state_->prepare(); }

// ---- values beside the steps

void Hook::save_scalar(std::string_view name, double value, const ScalarOptions& options) noexcept {
  state_->save_scalar(name, value, options);
}
void Hook::save_tensor_view(std::string_view name, const TensorView& tensor,
                            std::span<const std::string_view> collections) noexcept {
  state_->save_tensor(name, tensor, collections);
}
void Hook::enter_tape() { state_->enter_tape(); }
void Hook::export_collections() noexcept { state_->export_collections(); }
void Hook::describe_model(const ModelDescription& model) noexcept { state_->describe_model(model); }
void Hook::set_facts(const StepFacts& facts) noexcept { state_->set_facts(facts); }
void Hook::add_listener(std::shared_ptr<StepListener> listener) { state_->listeners().add(std::move(listener)); }
void Hook::on_publish(std::function<void()> listener) { state_->on_publish(std::move(listener)); }
void Hook::log(LogLevel level, std::string_view message) const noexcept { state_->log(level, message); }
void Hook::save_graph(std::string_view graph_def) noexcept { state_->save_ready(graph_def, /*is_graph=*/true); }
void Hook::save_summary(std::string_view summary) noexcept { state_->save_ready(summary, /*is_graph=*/false); }
void Hook::dump_flight_recorder() noexcept { state_->dump_flight_recorder(); }

// ---- collections

Collection Hook::collection(std::string_view name) {
  std::string resolved(config::resolve_collection_alias(name));
  // Asking for a collection creates it; there is nothing in it yet that could be wrong.
  const Status created = state_->change_collection(resolved, [](plan::Collection&) { return Status(); });
  assert(created.ok());
  static_cast<void>(created);
  return {state_.get(), std::move(resolved)};
}
std::vector<std::string> Hook::collection_names() const { return state_->collection_names(); }

Status Collection::include(std::string_view pattern) {
  return state_->change_collection(name_, [&](plan::Collection& c) {
    c.include_regex.emplace_back(pattern);
    return Status();
  });
}
Status Collection::include(std::span<const std::string> patterns) {
  return state_->change_collection(name_, [&](plan::Collection& c) {
    c.include_regex.insert(c.include_regex.end(), patterns.begin(), patterns.end());
    return Status();
  });
}
Status Collection::exclude(std::string_view pattern) {
  return state_->change_collection(name_, [&](plan::Collection& c) {
    c.exclude_regex.emplace_back(pattern);
    return Status();
  });
}
Status Collection::add(std::string_view tensor_name) {
  return state_->change_collection(name_, [&](plan::Collection& c) {
    c.tensor_names.emplace(tensor_name);
    return Status();
  });
}
Status Collection::set_save_config(const SaveConfig& config) {
  return state_->change_collection(name_, [&](plan::Collection& c) -> Status {
    const std::int64_t interval = config::default_save_interval(state_->config().framework);
    TORNASOLE_TRY(c.schedules, config::make_schedules(config, interval));
    return {};
  });
}
Status Collection::set_reduction_config(const ReductionConfig& config) {
  return state_->change_collection(name_, [&](plan::Collection& c) -> Status {
    TORNASOLE_TRY(c.reductions, config::make_reduction_spec(config));
    return {};
  });
}
Status Collection::set_save_histogram(bool on) {
  return state_->change_collection(name_, [&](plan::Collection& c) {
    c.save_histogram = on;
    return Status();
  });
}
std::vector<std::string> Collection::include_regex() const { return state_->collection(name_).include_regex; }
std::vector<std::string> Collection::exclude_regex() const { return state_->collection(name_).exclude_regex; }
std::vector<std::string> Collection::tensor_names() const { return state_->collection(name_).all_names(); }

// ---- state and end

bool Hook::stop_requested() const noexcept { return state_->stop_requested(); }
std::vector<std::string> Hook::non_finite_tensors() const { return state_->non_finite_tensors(); }
Mode Hook::mode() const noexcept { return state_->mode(); }
std::int64_t Hook::step() const noexcept { return state_->step(); }
std::int64_t Hook::mode_step(Mode mode) const noexcept { return state_->mode_step(mode); }
std::int64_t Hook::last_saved_step() const noexcept { return state_->last_saved_step(); }
const std::string& Hook::out_dir() const noexcept { return state_->config().out_dir; }
const std::string& Hook::worker() const noexcept { return state_->config().worker; }
CaptureReport Hook::report() const { return state_->report(); }

Status Hook::close() noexcept {
  state_->listeners().hook_closed();
  return state_->close({.wait_s = state_->config().close_wait_s});
}
Status Hook::fail(std::string_view reason) noexcept {
  state_->listeners().hook_closed();
  try {
    return state_->close({.is_failed = true,
                          .is_open_step_partial = true,
                          .reason = std::string(reason),
                          .wait_s = state_->config().close_wait_s});
  } catch (...) {
    return close();
  }
}

}  // namespace tornasole
