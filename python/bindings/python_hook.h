#pragma once

// PythonHook: a hook and its open step. The front end begins and ends steps, so a step needs no object of its own in
// Python.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/log_queue.h"
#include "tornasole/front_end.h"
#include "tornasole/hook.h"

namespace tornasole::python {

class PythonHook {
 public:
  PythonHook(Hook hook, std::shared_ptr<LogQueue> log)
      : log_(std::move(log)), hook_(std::move(hook)), is_strict_(is_strict()) {}

  static PythonHook open(nanobind::handle options);
  static PythonHook open_file(const std::string& path, nanobind::handle options);

  Hook& hook() noexcept {
    count_idle_steps();
    return hook_;
  }
  bool stop_requested() const noexcept { return hook_.stop_requested(); }
  // Somebody else uses the hook, too, and is to find every step in it.
  Hook& shared_hook() noexcept {
    is_shared_ = true;
    return hook();
  }

  // Whether anything can be saved in the step.
  bool begin_step(std::optional<int> mode) {
    count_idle_steps();
    step_.reset();
    step_.emplace(mode ? hook_.begin_step(static_cast<Mode>(*mode)) : hook_.begin_step());
    settle();
    return step_->anything_due();
  }
  // The same for a step that is like the open one but for these facts. False, and nothing has happened: begin_step has
  // to.
  bool repeat_step(std::optional<int> mode, const StepFacts& facts) {
    if (!step_ || idle_left_ != 0 || idle_begun_ != 0 || (mode && static_cast<Mode>(*mode) != step_->mode()))
      return false;
    if (!tornasole::repeat_step(hook_, *step_, facts)) return false;
    settle();
    return true;
  }
  bool begin_step_at(int mode, std::int64_t global_step) {
    count_idle_steps();
    step_.reset();
    step_.emplace(hook_.begin_step(static_cast<Mode>(mode), GlobalStep{global_step}));
    settle();
    return step_->anything_due();
  }
  // The same for a step in which nothing is due, as is known of a few in advance: they are counted when anything else
  // is asked of the hook. False: begin_step has to.
  bool begin_idle_step(int mode) noexcept {
    if (idle_left_ == 0 || mode != idle_mode_) return false;
    --idle_left_;
    ++idle_begun_;
    return true;
  }
  // Nothing was due in the step that has begun: looks how many of the next are like it.
  void expect_idle_steps(int mode) noexcept {
    idle_mode_ = mode;
    idle_left_ = is_shared_ ? 0 : static_cast<int>(std::min<std::int64_t>(idle_steps(hook_), kMostIdleSteps));
  }
  bool expects_idle_step() const noexcept { return idle_left_ > 0; }
  void end_step(bool is_partial) {
    count_idle_steps();
    if (step_ && is_partial) step_->end_partial();
    step_.reset();
    settle();
  }
  bool anything_due() const noexcept { return step_ && step_->anything_due(); }
  void set_usual_facts(std::optional<std::int64_t> optimizer_step, bool training, bool grad_enabled) {
    hook().set_facts({.optimizer_step = optimizer_step, .training = training, .grad_enabled = grad_enabled});
  }
  // Whether anything can be saved in the step with these collections.
  bool make_due(const std::vector<std::string>& collections);
  std::uint64_t due_set() const noexcept { return step_ ? step_->due_set() : 0; }
  bool wants(std::string_view name) const noexcept { return step_ && step_->anything_due() && step_->wants(name); }

  // By a text, or by a TensorName or ModuleName that was used for this hook alone.
  template <typename Name>
  void save(Name&& name, nanobind::handle array) {
    use(array, [&](const TensorView& view) { step_->save(name, view); });
  }
  // Those of modules by their names as above; what nobody wants is not looked at.
  void offer_input(ModuleName& module, nanobind::handle array) {
    if (!skip_input(hook_, module)) save_input(module, array);
  }
  void offer_output(ModuleName& module, nanobind::handle array) {
    if (!skip_output(hook_, module)) save_output(module, array);
  }
  template <typename Name>
  void save_input(Name&& module, nanobind::handle array) {
    use(array, [&](const TensorView& view) { step_->save_input(module, view); });
  }
  template <typename Name>
  void save_output(Name&& module, nanobind::handle array) {
    use(array, [&](const TensorView& view) { step_->save_output(module, view); });
  }
  // What may hold texts too.
  void save_any(std::string_view name, nanobind::handle array);
  void save_many(nanobind::handle names, nanobind::handle arrays);
  void save_tensor(std::string_view name, nanobind::handle array, const std::vector<std::string>& collections);
  void save_scalar(std::string_view name, nanobind::handle value, bool sm_metric, std::optional<double> timestamp);
  void set_mode(int mode) {
    hook().set_mode(static_cast<Mode>(mode));
    settle();
  }
  void prepare();
  void close();
  void fail(const std::string& reason);
  // Messages go to Python's logging here, on the caller's thread; in strict mode the first failure is raised, once.
  void settle() {
    if (is_strict_ || !log_->is_empty()) settle_slowly();
  }

 private:
  // So that what is seen of the run from outside, its number of steps, lags behind by little.
  static constexpr std::int64_t kMostIdleSteps = 15;
  // From here on it pays to let other threads of Python run while a value is reduced or copied.
  static constexpr std::int64_t kUnlockedBytes = 64 << 10;

  static HookOptions with_log(nanobind::handle dict, const std::shared_ptr<LogQueue>& log);
  static PythonHook opened(Result<Hook> hook, const std::shared_ptr<LogQueue>& log);
  void settle_slowly();
  void count_idle_steps() noexcept {
    if (idle_left_ != 0 || idle_begun_ != 0) count_idle_steps_now();
  }
  void count_idle_steps_now() noexcept;
  template <typename Use>
  void use(nanobind::handle array, const Use& use) {
    if (!anything_due()) return;
    const BorrowedArray borrowed(array);
    if (borrowed.view().size_bytes() < kUnlockedBytes) return use(borrowed.view());
    const nanobind::gil_scoped_release unlocked;
    use(borrowed.view());
  }

  std::shared_ptr<LogQueue> log_;  // shared with the log hook, which the writer thread may hold on to
  Hook hook_;
  std::optional<StepScope> step_;  // ends before the hook does
  bool is_strict_;
  bool is_shared_ = false;
  int idle_mode_ = 0, idle_left_ = 0;
  int idle_begun_ = 0;  // and not counted yet
};

}  // namespace tornasole::python
