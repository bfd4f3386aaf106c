#pragma once

// What the files of the C interface share: the handles, and the boundary that neither errors nor exceptions cross.
//
//   c_api.cc          hooks: steps, values, questions
//   c_api_options.cc  the options handle
//   c_api_texts.cc    JSON in (collections, model, facts) and out (report, collections)

#include <atomic>
#include <initializer_list>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/json.h"
#include "config/reductions.h"
#include "config/schedules.h"
#include "tornasole/c.h"
#include "tornasole/hook.h"

// The schedule and the form are kept as fields, since a mode takes from the others what it does not set itself and the
// calls may come in any order.
struct tornasole_options {
  tornasole::HookOptions options = {};
  tornasole::config::ScheduleFields schedule = {};
  tornasole::config::ReductionFields reductions = {};
};

struct tornasole_hook {
  explicit tornasole_hook(tornasole::Hook opened) : hook(std::move(opened)) {}

  enum class StepState { kNone, kNothingDue, kDue };

  tornasole::Hook hook;
  // Read without the lock, so that a save at a step that is not due costs nothing.
  std::atomic<StepState> step_state = StepState::kNone;
  std::shared_mutex step_mutex;              // savers share it; who begins or ends a step has it alone
  std::optional<tornasole::StepScope> step;  // guarded by step_mutex; ends before the hook does
};

namespace tornasole::capture {

// Makes it the last error of this thread; returns its code.
tornasole_code_t set_last_error(Error error) noexcept;

// The first argument that is null is the error: "tornasole_save: hook is null".
struct Argument {
  std::string_view name;
  const void* value;
};
Status not_null(std::string_view call, std::initializer_list<Argument> arguments);

// A text of the caller's own; null on failure, which is then the last error.
char* to_caller(std::string_view text) noexcept;

// Runs what returns a Status.
template <typename Call>
tornasole_code_t answer(Call&& call) noexcept {
  try {
    if (Status status = std::forward<Call>(call)(); !status.ok()) return set_last_error(std::move(status).error());
    return TORNASOLE_OK;
  } catch (...) {
    return set_last_error(error_from_current_exception());
  }
}

// Runs what returns a Result; its value, or `otherwise`.
template <typename T, typename Call>
T answer_or(T otherwise, Call&& call) noexcept {
  try {
    auto result = std::forward<Call>(call)();
    if (result.ok()) return std::move(result).value();
    set_last_error(std::move(result).error());
  } catch (...) {
    set_last_error(error_from_current_exception());
  }
  return otherwise;
}

// The options of a handle, complete.
HookOptions resolve(const tornasole_options& options);
SaveConfig to_save_config(const config::ScheduleFields& fields);

}  // namespace tornasole::capture
