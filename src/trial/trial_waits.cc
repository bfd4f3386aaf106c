// Everything that sleeps. A wait ends when what it waits for is there, when the run is over (ended, failed, presumed
// dead), or when the run gave no sign of life for timeout_s.

#include <algorithm>

#include "base/errors.h"
#include "trial/trial_errors.h"
#include "trial/trial_state.h"

namespace tornasole::trial {
namespace {

std::string over_text(const RunStatus& status) {
  switch (status.state) {
    case RunState::kEnded: return "the run has ended";
    case RunState::kFailed:
      return status.reason.empty() ? "the run failed" : fmt::format("the run failed: {}", status.reason);
    case RunState::kPresumedDead: return fmt::format("the run is presumed dead: {}", status.reason);
    case RunState::kRunning:
    case RunState::kUnknown: break;
  }
  return "the run goes on";
}

}  // namespace

Status TrialState::pause(double seconds) {
  if (!settings_.sleep) {
    sleep_(seconds);
  } else if (!settings_.sleep(seconds)) {
    Error error = not_yet_error("trial {}: the wait was ended by the caller", settings_.name);
    error.kind = ErrorKind::kRuntime;
    return error;
  }
  return {};
}

Status TrialState::set_waiting(std::optional<double> timeout_s, double poll_s) {
  TORNASOLE_CHECK(check_waiting(timeout_s, poll_s));
  settings_.timeout_s = timeout_s;
  settings_.poll_s = poll_s;
  return {};
}

bool TrialState::is_out_of_patience() const noexcept {
  return settings_.timeout_s && watch_.silence_s() >= *settings_.timeout_s;
}

Result<bool> TrialState::has_index_files() const {
  TORNASOLE_TRY(const auto entries, store_->list("index", /*recursive=*/true));
  return std::ranges::any_of(entries, [](const store::Entry& entry) { return entry.path.ends_with(".json"); });
}

// Too few collections files, and no hope for more. What is there is opened all the same, unless damage is to fail.
Status TrialState::give_up_on_collections(bool is_over) {
  const std::string found = fmt::format("{} of {} collections files are there", collections_.file_count(),
                                        std::max<std::int64_t>(1, collections_.num_workers()));
  if (settings_.on_damage == OnDamage::kSkip) {
    TORNASOLE_TRY(const bool has_steps, has_index_files());
    if (has_steps || collections_.readable_count() > 0) {
      note_damage({.path = "collections", .what = found});
      return {};
    }
  }
  const auto root = store_->status("");
  const std::string why = !root.ok() && root.error().code == ErrorCode::kNotFound ? "there is no such directory"
                          : is_over                                               ? over_text(watch_.status())
                                    : fmt::format("no sign of life for {:.3g} s", watch_.silence_s());
  Error error = missing_collections_error(store_->description(), fmt::format("{}, and {}", found, why));
  if (!is_over) error.code = ErrorCode::kNotYet;
  return error;
}

Status TrialState::wait_for_collections() {
  while (true) {
    TORNASOLE_CHECK(watch_.look(*store_));
    TORNASOLE_TRY(auto loaded, collections_.load(*store_, clock_.wall_seconds()));
    for (Damage& damage : loaded.damage) TORNASOLE_CHECK(meet_damage(std::move(damage)));
    for (Damage& disagreement : loaded.disagreements) note_damage(std::move(disagreement));

    const auto files = static_cast<std::int64_t>(collections_.file_count());
    const bool is_waiting_for_text = !loaded.young.empty();
    // Files that say nothing readable do not say that more will come.
    const bool are_all_there = files > 0 && (collections_.readable_count() == 0 || files >= collections_.num_workers());
    if (are_all_there && !is_waiting_for_text) return {};
    if (!is_waiting_for_text || is_out_of_patience()) {
      if (watch_.is_over()) return give_up_on_collections(/*is_over=*/true);
      if (is_out_of_patience()) return give_up_on_collections(/*is_over=*/false);
    }
    TORNASOLE_CHECK(pause(settings_.poll_s));
  }
}

Status TrialState::wait_for_step(ModeStep step) {
  while (true) {
    TORNASOLE_CHECK(refresh());
    // A run that is over counts as fully loaded here: what is known is all there will be.
    Progress progress = progress_;
    const bool is_over = progress_.loaded_all_steps || watch_.is_over();
    progress.loaded_all_steps = is_over;
    if (is_over && !columns_.steps().empty()) progress.last_complete_step = columns_.steps().back().number;
    const StepState state = has_passed_step(columns_, progress, step);
    if (state == StepState::kAvailable) return {};
    const std::int64_t last = last_step(step.mode);
    if (state == StepState::kUnavailable) {
      if (!is_over || step.number <= last) return step_unavailable_error(step, last, "it was passed over");
      return no_more_data_error(step, last, over_text(watch_.status()));
    }
    if (is_out_of_patience()) {
      return step_not_yet_error(step, last, fmt::format("no sign of life for {:.3g} s", watch_.silence_s()));
    }
    TORNASOLE_CHECK(pause(settings_.poll_s));
  }
}

Status TrialState::wait_for_steps(std::span<const ModeStep> steps) {
  for (const ModeStep step : steps) TORNASOLE_CHECK(wait_for_step(step));
  return {};
}

Result<Tensor> TrialState::wait_for_value(std::string_view name, ModeStep step, std::string_view worker) {
  const auto ask = [&]() -> Result<Tensor> {
    TORNASOLE_TRY(const std::uint32_t tensor, find_tensor(name));
    return value(tensor, step, worker);
  };
  auto answer = ask();
  if (answer.ok()) return answer;
  const bool has_location =
      answer.error().kind == ErrorKind::kTensorUnavailableForStep && answer.error().details->reason != "not saved";
  if (!has_location) TORNASOLE_CHECK(wait_for_step(step));
  TORNASOLE_CHECK(wait_for_file(name, step, worker));
  return ask();
}

// The index came before the event file; give the file time to come.
Status TrialState::wait_for_file(std::string_view name, ModeStep step, std::string_view worker) {
  TORNASOLE_TRY(const std::uint32_t tensor, find_tensor(name));
  for (std::int64_t tries = 0; tries < settings_.missing_file_retries && !is_out_of_patience(); ++tries) {
    TORNASOLE_TRY(const std::uint32_t chosen, choose_worker(tensor, step, worker));
    if (!is_file_to_come(tensor, step, chosen)) break;
    TORNASOLE_CHECK(pause(settings_.poll_s));
    // Only whether the run is over: nothing else is to be seen.
    TORNASOLE_CHECK(watch_.look(*store_));
  }
  return {};
}

}  // namespace tornasole::trial
