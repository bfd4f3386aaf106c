#include "cli/trial_waiting.h"

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/errors.h"
#include "cli/number_text.h"
#include "cli/trial_paths.h"

namespace tornasole::cli {

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void Patience::renew() { since_ns_ = system_clock().monotonic_ns(); }
bool Patience::is_over() const { return static_cast<double>(system_clock().monotonic_ns() - since_ns_) > timeout_ns_; }

Result<Trial> wait_for_trial(const TrialWait& wait) {
  const auto open = [&]() -> Result<Trial> {
    TORNASOLE_CHECK(check_trial_directory(wait.dir));
    return Trial::open({.path = wait.dir, .first_step = wait.first_step, .end_step = wait.end_step, .timeout_s = 0});
  };
  Patience patience(wait.timeout_s);
  bool is_told = false;
  while (true) {
    auto trial = open();
    if (trial) return trial;
    const ErrorCode code = trial.error().code;
    // An older run is moved aside while it is looked at: what was seen may be gone (kNotFound).
    const bool may_come = code == ErrorCode::kNotYet || (code == ErrorCode::kNotFound &&
                                                         (!check_directory(wait.dir).ok() || has_run_begun(wait.dir)));
    if (!may_come) return trial;
    if (patience.is_over()) {
      return not_yet_error("{}; waited {} s", trial.error().message, number_text(wait.timeout_s));
    }
    if (wait.on_wait && !is_told) wait.on_wait();
    is_told = true;
    sleep_seconds(wait.poll_s);
  }
}

}  // namespace tornasole::cli
