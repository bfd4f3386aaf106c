// Steps: counting, what is due, and what happens when one ends.

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/hook_guard.h"
#include "capture/hook_state.h"
#include "reduce/reduce.h"
#include "tensorboard/summary_tag.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kMaxPendingScalars = 200'000;
constexpr std::size_t kMaxPendingTensors = 10'000;
constexpr std::size_t kMaxReadyBytes = std::size_t{64} << 20;  // of a graph or summary that is serialized already
constexpr auto kCopiesWait = std::chrono::seconds(11);         // longer than any copy may take

}  // namespace

// Called at the first step, and at the next one after a collection changed.
Status HookState::prepare_locked() {
  if (plan_ && plan_version_ == collections_.version()) return {};
  try {
    auto prepared = plan::Plan::prepare(config_, &collections_, plan_ ? &*plan_ : nullptr);
    plan_version_ = collections_.version();
    if (!prepared.ok()) return std::move(prepared).error();
    plan_ = std::move(prepared).value();
    if (has_old_ids_) {
      for (auto& [name, info] : infos_) {
        if (!info.is_bad) info.id = plan_->name_id(*info.name);
      }
      has_old_ids_ = false;
    }
    precompute_locked();
  } catch (...) {  // no memory: what was taken over from the last plan is gone with it
    plan_.reset();
    has_old_ids_ = true;
    return error_from_current_exception();
  }
  for (const std::string& warning : plan_->warnings()) health_->log(LogLevel::kWarning, warning);
  return {};
}

void HookState::precompute_locked() {
  due_sets_.clear();
  saved_by_position_.assign(plan_->saved().size(), {});
  all_bits_.assign((plan_->saved().size() + 63) / 64, ~std::uint64_t{0});
  if (const std::size_t rest = plan_->saved().size() % 64; rest != 0) all_bits_.back() = (std::uint64_t{1} << rest) - 1;
  for (const Mode mode : kAllModes) {
    // From the step that is being opened, not from the one after it: it may be the first under this plan.
    next_due_[mode_index(mode)] = plan_->next_due_step(mode, std::max<std::int64_t>(0, mode_steps_[mode_index(mode)]));
  }
  if (!statistics_.empty()) find_derived_collection_locked();
}

Status HookState::prepare() {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  return prepare_locked();
}

HookState::Begun HookState::begin_step(std::optional<Mode> mode, std::optional<std::int64_t> at) noexcept {
  Begun begun;
  guarded("begin_step", [&] {
    std::unique_lock lock(mutex_);
    if (step_.is_open) end_step_locked(lock, /*is_partial=*/false);
    if (at && *at < 0) {
      health_->note("bad_step", invalid_error("step {} is negative; steps count from 0", *at));
      return;
    }
    if (checkpoints_) {
      Counters counters{.global_step = global_step_};
      if (last_saved_ >= 0) counters.last_saved = last_saved_;
      for (const Mode m : kAllModes) {
        if (mode_steps_[mode_index(m)] >= 0 || m == mode_) counters.mode_steps[m] = mode_steps_[mode_index(m)];
      }
      if (const Status noted = checkpoints_->note(counters); !noted.ok()) health_->note("checkpoint", noted.error());
    }
    if (mode) mode_ = *mode;
    count_step_locked(mode_, at);
    open_step_locked(mode_, at.has_value());
    const bool is_due = step_.has_due || step_.has_watch || step_.is_recording || step_.has_keep;
    begun = {step_.id, is_due, is_due ? step_.due_set : 0};
    if (tensors_.empty()) return;
    for (PendingTensor& pending : std::exchange(tensors_, {})) {
      std::vector<std::string_view> texts;
      NameInfo* info = plan_ ? name_info_locked(pending.name) : nullptr;
      if (info != nullptr) save_locked(lock, *info, view_of(pending.tensor, &texts));
    }
  });
  return begun;
}

// Whether the next step begins as this one did, and nothing is to be done between the two but to hand this one over.
// What is kept of it for the next one goes by what is due after that, too.
bool HookState::is_repeatable_locked(std::uint64_t serial) const {
  if (step_.id.serial != serial || !step_.is_open || !step_.is_started || step_.is_lost || !step_.has_due) return false;
  if (step_.id.mode != mode_ || step_.id.mode_step + 2 >= step_.same_until) return false;
  if (step_.has_watch || step_.is_recording || !step_.held.empty() || !step_.classes.empty()) return false;
  if (in_flight_ != 0 || !tensors_.empty() || checkpoints_ || config_.dry_run) return false;
  if (!is_exported_ || !is_coverage_reported_ || is_dump_wanted_) return false;
  return plan_ && !has_bad_plan_ && plan_version_ == collections_.version();
}

HookState::Begun HookState::repeat_step(std::uint64_t serial, const StepFacts& facts) noexcept {
  Begun begun;
  guarded("begin_step", [&] {
    const std::lock_guard lock(mutex_);
    if (!is_repeatable_locked(serial)) return;
    flush_scalars_locked();
    if (step_.is_lost) return;
    hand_over_locked(/*is_partial=*/false);
    count_step_locked(mode_, std::nullopt);
    step_.id = {++serial_, global_step_, mode_, mode_steps_[mode_index(mode_)]};
    step_.is_started = step_.is_handed_over = false;
    step_.facts = facts;
    step_.bytes = step_.waited_ns = 0;
    step_.non_finite.clear();
    next_due_[mode_index(mode_)] = step_.id.mode_step + 1;
    begun = {step_.id, true, step_.due_set};
  });
  return begun;
}

HookState::Begun HookState::make_due(std::uint64_t serial, std::span<const std::string_view> collections) noexcept {
  Begun begun;
  guarded("make_due", [&] {
    const std::lock_guard lock(mutex_);
    if (step_.id.serial != serial || !step_.is_open || !is_writer_ || !plan_ || has_bad_plan_) return;
    // Of a step with nothing due only the number is worked out when it is opened.
    if (!step_.has_due) step_.due.assign(all_bits_.size(), 0);
    if (!step_.has_watch) step_.watching.assign(all_bits_.size(), 0);
    step_.triggered.resize(all_bits_.size(), 0);
    const std::vector<const plan::Collection*>& saved = plan_->saved();
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (std::ranges::find(collections, std::string_view(saved[i]->name)) == collections.end()) continue;
      const auto& schedule = saved[i]->schedules[mode_index(step_.id.mode)];
      if (schedule && schedule->end_step && *schedule->end_step <= 0) continue;
      step_.due[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    step_.has_due = plan::any(step_.due);
    step_.same_until = 0;
    const bool is_due = step_.has_due || step_.has_watch || step_.is_recording || step_.has_keep;
    if (is_due) step_.due_set = find_due_set_locked();
    begun = {step_.id, is_due, is_due ? step_.due_set : 0};
  });
  return begun;
}

std::int64_t HookState::idle_steps() noexcept {
  std::int64_t count = 0;
  guarded("idle_steps", [&] {
    const std::lock_guard lock(mutex_);
    const bool is_idle = step_.is_open && !step_.has_due && !step_.has_watch && !step_.is_recording && !step_.has_keep;
    if (!is_idle || checkpoints_ || !tensors_.empty() || !is_writer_ || !plan_ || has_bad_plan_) return;
    if (plan_version_ != collections_.version() || plan_->has_watch(mode_) || recorder_.is_on()) return;
    // A step before one that is due may be kept.
    count = std::max<std::int64_t>(0, next_due_[mode_index(mode_)] - 2 - mode_steps_[mode_index(mode_)]);
  });
  return count;
}

void HookState::count_step_locked(Mode mode, std::optional<std::int64_t> at) {
  std::int64_t& of_mode = mode_steps_[mode_index(mode)];
  if (at) {
    global_step_ = *at;
    of_mode = *at;
  } else {
    ++global_step_;
    ++of_mode;
  }
  mode_steps_[mode_index(Mode::kGlobal)] = global_step_;
}

// Leaves step_ open; when nothing is due, watched or recorded that is all there is to it.
void HookState::open_step_locked(Mode mode, bool is_jump) {
  step_.id = {++serial_, global_step_, mode, mode_steps_[mode_index(mode)]};
  step_.is_open = true;
  step_.has_due = step_.has_watch = step_.is_recording = step_.has_keep = false;
  if (!is_writer_) return;
  if (!plan_ || plan_version_ != collections_.version()) {
    const Status prepared = prepare_locked();
    if (!prepared.ok()) {
      has_bad_plan_ = true;
      health_->note("collections", prepared.error());
    } else {
      has_bad_plan_ = false;
    }
  }
  if (has_bad_plan_ || !plan_) return;
  const std::int64_t mode_step = step_.id.mode_step;
  std::int64_t& next = next_due_[mode_index(mode)];
  // Steps may jump: by a number the caller chose, and in the global mode by the steps of the others.
  if (is_jump || mode_step > next) next = plan_->next_due_step(mode, mode_step);
  const bool is_recording = recorder_.is_on();
  if (mode_step < next && !plan_->has_watch(mode) && !is_recording && !keeps_before(mode, next, mode_step)) return;
  OpenStep fresh;
  fresh.id = step_.id;
  fresh.is_open = true;
  fresh.due = plan_->due(mode, mode_step);
  fresh.has_due = plan::any(fresh.due);
  fresh.watching = plan_->watching(mode, mode_step);
  fresh.has_watch = plan::any(fresh.watching);
  fresh.triggered.assign(fresh.watching.size(), 0);
  fresh.is_recording = is_recording;
  step_ = std::move(fresh);
  next = plan_->next_due_step(mode, mode_step + 1);
  step_.has_keep = keeps_before(mode, next, mode_step);
  if (step_.has_keep) step_.due_next = plan_->due(mode, next);
  step_.due_set = find_due_set_locked();
  if (!plan_->has_watch(mode)) step_.same_until = plan_->same_until(mode, mode_step);
  if (is_recording) recorder_.begin(step_.id);
}

std::uint64_t HookState::find_due_set_locked() {
  // What is due, watched and kept, each as wide as the plan; then what else names are told apart by.
  const std::size_t width = all_bits_.size();
  due_set_key_.assign(3 * width + 1, 0);
  const auto put = [&](std::size_t place, const plan::CollectionBits& bits) {
    std::ranges::copy(bits, due_set_key_.begin() + static_cast<std::ptrdiff_t>(place * width));
  };
  if (step_.has_due) put(0, step_.due);
  if (step_.has_watch) put(1, step_.watching);
  if (step_.has_keep) put(2, step_.due_next);
  due_set_key_.back() = 2 * static_cast<std::uint64_t>(step_.id.mode) + (step_.is_recording ? 1 : 0);
  const auto [known, is_new] = due_sets_.try_emplace(due_set_key_, last_due_set_ + 1);
  if (is_new) ++last_due_set_;
  return known->second;
}

// The step gets its first value: from here on it is counted as due, and ends as committed or dropped.
bool HookState::start_step_locked() {
  if (step_.is_lost) return false;
  if (step_.is_started) return true;
  step_.is_started = true;
  health_->step_due();
  if (config_.dry_run) return true;
  if (!writer_->accepts_step()) {
    step_.is_lost = true;
    writer_->note_unaccepted_step();
    return false;
  }
  writer_->push(StepStartJob{step_.id}, 0, JobQueue::Wake::kSoon);
  return true;
}

void HookState::end_step(std::uint64_t serial, bool is_partial) noexcept {
  if (is_closed_.load(std::memory_order_relaxed)) return;  // closing ended it; a scope that goes later is no late call
  guarded("end_step", [&] {
    std::unique_lock lock(mutex_);
    if (!step_.is_open || step_.id.serial != serial) return;
    try {
      end_step_locked(lock, is_partial);
    } catch (...) {
      const Error why = error_from_current_exception();
      if (step_.is_handed_over || !step_.is_started) {
        health_->note("end_step", why);
      } else {
        lose_step_locked(serial, "end_step", why);
      }
      step_.is_started = step_.has_due = step_.has_watch = step_.is_recording = step_.has_keep = false;
    }
  });
}

// What was saved of the step is the writer's from here on.
void HookState::hand_over_locked(bool is_partial) {
  last_saved_ = step_.id.global_step;
  run_bytes_ += step_.bytes;
  if (config_.dry_run) {
    health_->step_committed(step_.id.global_step, step_.bytes);
  } else {
    writer_->push(StepEndJob{step_.id, is_partial, step_.facts, std::move(step_.metrics),
                             is_exported_ ? nullptr : export_collections_locked()},
                  0, JobQueue::Wake::kSoon);
    step_.is_handed_over = true;
  }
}

void HookState::end_step_locked(std::unique_lock<std::mutex>& lock, bool is_partial) {
  step_.is_open = false;
  if (step_.has_due || step_.has_watch || step_.is_recording || step_.has_keep) {
    copies_done_.wait_for(lock, kCopiesWait, [this] { return in_flight_ == 0; });
    const bool is_triggered = step_.has_watch && plan::any(step_.triggered);
    if (is_triggered) write_held_locked(lock);
    if (step_.has_due || step_.is_started) flush_scalars_locked();
    const bool is_saved = step_.is_started && !step_.is_lost;
    if (is_saved) hand_over_locked(is_partial);
    if (step_.is_recording) recorder_.end(step_.facts, is_saved);
    is_dump_wanted_ = is_dump_wanted_ || ((is_triggered || is_partial) && recorder_.is_on());
    if (is_saved && !is_coverage_reported_) report_coverage_locked(/*is_final=*/false);
    if (is_dump_wanted_) write_recorded_locked();
  }
  step_.held.clear();
  step_.held_bytes = 0;
  step_.classes.clear();
  step_.non_finite.clear();
  step_.is_started = step_.is_lost = step_.is_handed_over = false;
  step_.facts = {};
  step_.bytes = step_.waited_ns = 0;
  step_.has_due = step_.has_watch = step_.is_recording = step_.has_keep = false;
}

void HookState::set_mode(Mode mode) noexcept {
  guarded("set_mode", [&] {
    std::unique_lock lock(mutex_);
    if (step_.is_open && mode != mode_) end_step_locked(lock, /*is_partial=*/false);
    mode_ = mode;
  });
}

// ---- what a step gets when it ends

// A watched tensor was not finite: the collections that watch it are saved as if they had been due.
void HookState::write_held_locked(std::unique_lock<std::mutex>& lock) {
  plan::CollectionBits both = step_.due;
  for (std::size_t word = 0; word < both.size(); ++word) both[word] |= step_.triggered[word];
  for (Held& held : std::exchange(step_.held, {})) {
    std::vector<std::string_view> texts;
    const TensorView view = view_of(held.tensor, &texts);
    const Work before = make_work_locked(*held.info, step_.due, view);
    Work work = make_work_locked(*held.info, both, view);
    work.wall_time = held.wall_time;
    work.save_raw = (work.save_raw || held.is_trigger) && !before.save_raw;
    work.save_shape = work.save_shape && !before.save_shape && !work.save_raw;
    if (work.numbers != nullptr && before.numbers != nullptr) {
      std::vector<Reduction> rest = work.numbers->reductions;
      const std::vector<Reduction>& written = before.numbers->reductions;
      std::erase_if(rest, [&](Reduction one) { return std::ranges::find(written, one) != written.end(); });
      work.numbers = rest.empty() ? nullptr : numbers_locked(*held.info, rest);
    }
    if (before.summary.histogram_tag != nullptr) work.summary.histogram_tag = nullptr;
    if (before.summary.scalar_tag != nullptr) work.summary.scalar_tag = nullptr;
    if (!work.is_empty()) write_work(lock, work, view);
    // Those of a tensor that was due are written already.
    if (!is_derived_source_locked(*held.info, step_.due)) derive(lock, *held.info, view, both, held.wall_time);
  }
}

void HookState::save_scalar(std::string_view name, double value, const ScalarOptions& options) noexcept {
  guarded("save_scalar", [&] {
    const std::lock_guard lock(mutex_);
    if (!is_writer_) return;
    if (scalars_.size() >= kMaxPendingScalars) {
      health_->value_dropped("scalars_full",
                             io_error("{} scalars wait for a step that is saved; '{}' and later ones are lost",
                                      scalars_.size(), printable(name)));
      return;
    }
    const auto known = scalar_names_.find(name);
    ScalarName stored;
    if (known != scalar_names_.end()) {
      stored = known->second;
    } else {
      const std::string full = fmt::format("scalar/{}", replace_bad_utf8(name));
      if (full.size() > (std::size_t{64} << 10) || name.empty()) {
        health_->value_dropped("bad_name", invalid_error("a scalar's name is empty or longer than 64 KiB"));
        return;
      }
      stored.name = keep_name_locked(full);
      if (config_.tensorboard_dir) stored.tag = keep_name_locked(tensorboard::clean_tag(full));
      scalar_names_.emplace(std::string(name), stored);
      collections_.get("scalars").tensor_names.insert(full);
    }
    scalars_.push_back(
        {stored.name, stored.tag, value, options.timestamp.value_or(clock_->wall_seconds()), mode_, options.sm_metric});
  });
}

void HookState::flush_scalars_locked() {
  if (scalars_.empty() || !start_step_locked()) return;
  // Those that the step cannot take any more wait for the next one.
  std::size_t done = 0;
  for (; done < scalars_.size(); ++done) {
    const PendingScalar& scalar = scalars_[done];
    if (!spend_locked(step_.id.serial, *scalar.name, DType::kFloat64, Shape{1}, sizeof scalar.value)) break;
    push_small_locked(step_.id.serial, scalar.name, TensorView::of(scalar.value), scalar.timestamp,
                      {.scalar_tag = scalar.tag});
    if (step_.is_lost) break;
    if (scalar.is_metric && config_.in_sagemaker) {
      step_.metrics.push_back({*scalar.name, scalar.mode, scalar.value, scalar.timestamp,
                               std::max<std::int64_t>(0, mode_steps_[mode_index(scalar.mode)])});
    }
  }
  scalars_.erase(scalars_.begin(), scalars_.begin() + static_cast<std::ptrdiff_t>(done));
}

// Scalars that no step took: the last step is published and is never opened again, so they get one of their own.
void HookState::flush_late_scalars_locked(std::unique_lock<std::mutex>& lock) {
  if (scalars_.empty() || !is_writer_ || has_bad_plan_) return;
  if (!plan_ && !prepare_locked().ok()) return;
  const std::int64_t number = last_saved_ >= global_step_ ? global_step_ + 1 : std::max<std::int64_t>(0, global_step_);
  const bool is_new = number > global_step_;
  step_ = OpenStep{};
  step_.id = {++serial_, number, is_new ? Mode::kGlobal : mode_,
              is_new ? number : std::max<std::int64_t>(0, mode_steps_[mode_index(mode_)])};
  step_.has_due = true;
  end_step_locked(lock, /*is_partial=*/false);
}

void HookState::save_tensor(std::string_view name, const TensorView& tensor,
                            std::span<const std::string_view> collections) noexcept {
  guarded("save_tensor", [&] {
    std::unique_lock lock(mutex_);
    if (!is_writer_) return;
    if (const Status prepared = prepare_locked(); !prepared.ok()) {
      health_->note("collections", prepared.error());
      return;
    }
    NameInfo* info = name_info_locked(name);
    if (info == nullptr || info->is_bad) return;
    const std::size_t known = plan_->saved().size();
    plan_->add_to_collections(info->id, collections);
    info->unwanted_in = 0;
    if (plan_->saved().size() != known) {
      precompute_locked();
      if (step_.is_open) {
        step_.due = plan_->due(step_.id.mode, step_.id.mode_step);
        step_.has_due = plan::any(step_.due);
        step_.watching = plan_->watching(step_.id.mode, step_.id.mode_step);
        step_.triggered.resize(step_.watching.size(), 0);
        step_.due_set = find_due_set_locked();
        step_.same_until = 0;
      }
    }
    if (step_.is_open) {
      try {
        save_locked(lock, *info, tensor);
      } catch (...) {
        lose_unsaved_locked(step_.id.serial, error_from_current_exception());
      }
    } else if (tensors_.size() < kMaxPendingTensors) {
      tensors_.push_back({std::string(name), Tensor(tensor)});  // saved in the step that begins next, if it is due then
    } else {
      health_->value_dropped(
          "tensors_full", io_error("{} tensors wait for a step to begin; '{}' and later ones are lost", tensors_.size(),
                                   printable(name)));
    }
  });
}

void HookState::save_ready(std::string_view bytes, bool is_graph) noexcept {
  guarded(is_graph ? "save_graph" : "save_summary", [&] {
    if (!is_writer_ || !writer_ || !config_.tensorboard_dir || bytes.empty()) return;
    if (bytes.size() > kMaxReadyBytes) {
      health_->value_dropped("tensorboard", io_error("a {} of {} bytes is not shown; at most {} are",
                                                     is_graph ? "graph" : "summary", bytes.size(), kMaxReadyBytes));
      return;
    }
    const std::lock_guard lock(mutex_);
    const StepId id{serial_, std::max<std::int64_t>(0, global_step_), mode_, 0};
    writer_->push(ReadySummaryJob{id, clock_->wall_seconds(), Bytes(bytes), is_graph}, bytes.size());
  });
}

// ---- flight recorder

void HookState::dump_flight_recorder() noexcept {
  guarded("dump_flight_recorder", [&] {
    const std::lock_guard lock(mutex_);
    if (!recorder_.is_on()) {
      health_->log(LogLevel::kWarning, "there is no flight recorder: flight_recorder_steps is 0");
      return;
    }
    // While a step is being written its jobs must not be mixed with those of others.
    if (step_.is_open) {
      is_dump_wanted_ = true;
    } else {
      write_recorded_locked();
    }
  });
}

void HookState::write_recorded_locked() {
  is_dump_wanted_ = false;
  const StepId ended = step_.id;
  for (RecordedStep& recorded : recorder_.take()) {
    step_ = OpenStep{};
    step_.id = recorded.id;
    step_.id.serial = ++serial_;
    if (!start_step_locked()) continue;
    for (const RecordedValue& value : recorded.values) {
      std::vector<std::string_view> texts;
      const TensorView view = view_of(value.tensor, &texts);
      if (view.dtype() == DType::kString) {
        push_texts_locked({.serial = step_.id.serial, .name = value.name, .wall_time = value.wall_time}, view);
      } else {
        bool is_exact_only = false;
        const std::optional<Tensor> wide =
            config_.readable_by_smdebug ? reduce::widen_for_smdebug(view, &is_exact_only) : std::nullopt;
        push_small_locked(step_.id.serial, value.name, wide ? view_of(*wide, &texts) : view, value.wall_time);
      }
    }
    if (step_.is_lost || config_.dry_run) continue;
    writer_->push(StepEndJob{step_.id, false, recorded.facts, {}, is_exported_ ? nullptr : export_collections_locked()},
                  0, JobQueue::Wake::kSoon);
  }
  step_ = OpenStep{};
  step_.id = ended;
}

}  // namespace tornasole::capture
