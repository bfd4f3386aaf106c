// Refreshing, in this order, so that nothing written before the end marker can be missed:
//
//   1. look at the end marker and the health files
//   2. collections files that are new or changed
//   3. new index files; move the last complete step and the token
//   4. model files that are new or changed
//   5. if the marker was there at 1, wait until it is old enough, do 2 to 4 once more, and be done for ever

#include "trial/trial_state.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "format/paths.h"
#include "trial/open_location.h"
#include "trial/trial_errors.h"
#include "trial/young_files.h"

namespace tornasole::trial {
namespace {

// A trial full of damage must not fill the memory with reports of it.
constexpr std::size_t kMaxDamageKept = 10'000;

// Each waits for the network most of the time, so the machine's processors are no measure.
constexpr unsigned kRemoteThreads = 16;
// Index files are many and small: almost all of the time is waiting for the next answer.
constexpr unsigned kRemoteIndexThreads = 48;

void really_sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

TrialState::TrialState(TrialSettings settings, TrialDependencies dependencies)
    : settings_(std::move(settings)),
      store_(std::move(dependencies.store)),
      clock_(dependencies.clock != nullptr ? *dependencies.clock : system_clock()),
      sleep_(dependencies.sleep ? std::move(dependencies.sleep) : really_sleep),
      threads_(dependencies.threads == 0 && store_->capabilities().is_remote ? kRemoteThreads : dependencies.threads),
      watch_(&clock_, dependencies.probe ? std::move(dependencies.probe) : is_process_alive),
      discoverer_(settings_.range) {}

Result<std::unique_ptr<TrialState>> TrialState::open(TrialSettings settings, TrialDependencies dependencies) {
  if (dependencies.store == nullptr) {
    TORNASOLE_TRY(dependencies.store, open_location(settings.path, /*read_only=*/true));
  }
  std::unique_ptr<TrialState> state(new TrialState(std::move(settings), std::move(dependencies)));  // private
  TORNASOLE_CHECK(state->wait_for_collections());
  TORNASOLE_CHECK(state->refresh());
  if (state->settings_.check) TORNASOLE_CHECK(state->check_all_values());
  return state;
}

void TrialState::note_damage(Damage damage) {
  ++damage_count_;
  if (damage_.size() < kMaxDamageKept) damage_.push_back(std::move(damage));
}

Status TrialState::meet_damage(Damage damage) {
  if (settings_.on_damage == OnDamage::kFail) return index_reader_error(damage.path, damage.what);
  note_damage(std::move(damage));
  return {};
}

Status TrialState::load_collections() {
  TORNASOLE_TRY(auto loaded, collections_.load(*store_, clock_.wall_seconds()));
  for (Damage& damage : loaded.damage) TORNASOLE_CHECK(meet_damage(std::move(damage)));
  for (Damage& disagreement : loaded.disagreements) note_damage(std::move(disagreement));
  return {};
}

Status TrialState::load_models(bool is_final) {
  TORNASOLE_TRY(auto damaged, models_.load(*store_, clock_.wall_seconds(), is_final));
  Status result;
  for (Damage& damage : damaged) {
    const std::string path = damage.path;
    Status met = meet_damage(std::move(damage));
    if (met.ok()) continue;
    models_.forget(path);
    if (result.ok()) result = std::move(met);
  }
  return result;
}

Status TrialState::refresh() {
  if (progress_.loaded_all_steps) return {};
  TORNASOLE_CHECK(watch_.look(*store_));
  TORNASOLE_CHECK(load_collections());
  const bool has_ended = watch_.has_end_marker();
  // Whoever comes long after the end need not wait for what may still be on its way.
  const bool is_settled = has_ended && watch_.marker_age_s() >= settings_.end_delay_s;
  TORNASOLE_CHECK(load_index(/*is_final=*/is_settled));
  TORNASOLE_CHECK(load_models(/*is_final=*/is_settled));
  if (!has_ended) return {};
  if (!is_settled) {
    TORNASOLE_CHECK(pause(settings_.end_delay_s));
    TORNASOLE_CHECK(load_collections());
    TORNASOLE_CHECK(load_index(/*is_final=*/true));
    TORNASOLE_CHECK(load_models(/*is_final=*/true));
  }
  progress_.loaded_all_steps = true;
  if (!columns_.steps().empty()) progress_.last_complete_step = columns_.steps().back().number;
  return {};
}

Status TrialState::load_index(bool is_final) {
  TORNASOLE_TRY(const Discovery found, discoverer_.look(*store_, /*is_growing=*/!watch_.has_end_marker()));
  for (const ForeignFile& file : found.foreign) {
    TORNASOLE_CHECK(meet_damage({.path = file.path, .what = "the name has no step and worker"}));
  }
  const bool waits_for_answers = threads_ == kRemoteThreads && store_->capabilities().is_remote;
  LoadReport loaded = load_index_files(*store_, found.files,
                                       {.threads = waits_for_answers ? kRemoteIndexThreads : threads_}, &columns_);
  for (Damage& note : loaded.notes) note_damage(std::move(note));
  const bool has_new_files = loaded.failed.size() < found.files.size();
  const Status sorted_out = sort_out_failures(found.files, loaded.failed, is_final);
  update_progress(has_new_files);
  return sorted_out;
}

Status TrialState::sort_out_failures(const std::vector<IndexFile>& files, const std::vector<FailedFile>& failed,
                                     bool is_final) {
  Status result;
  const double now_s = clock_.wall_seconds();
  for (const FailedFile& failure : failed) {
    const IndexFile& file = files[failure.place];
    const ErrorCode code = failure.error.code;
    if (code == ErrorCode::kNotFound) continue;  // gone since the listing
    if (code != ErrorCode::kCorrupt) {
      discoverer_.put_back(file);
      if (result.ok()) result = failure.error;
      continue;
    }
    if (!is_final && is_young(file.status.modified_s, now_s)) {
      discoverer_.put_back(file);
      continue;
    }
    Status met = meet_damage({.path = file.path, .what = failure.error.message});
    if (met.ok()) continue;
    // Damage that ends a refresh is met again by the next one.
    discoverer_.put_back(file);
    if (result.ok()) result = std::move(met);
  }
  return result;
}

void TrialState::update_progress(bool has_new_files) {
  progress_.num_workers = collections_.num_workers();
  if (collections_.readable_count() == 0) {
    progress_.num_workers = std::max<std::int64_t>(1, static_cast<std::int64_t>(columns_.worker_count()));
  }
  if (has_new_files) watch_.note_life();
  const std::int64_t before = progress_.last_complete_step;
  progress_.last_complete_step = advance_last_complete(columns_, progress_, settings_.incomplete_step_window);
  // The window moves on without new files, too.
  const bool has_moved = has_new_files || progress_.last_complete_step != before;
  if (progress_.last_complete_step < 0 || !has_moved) return;
  const std::vector<std::string> names = workers();
  std::string token =
      format::index_path(progress_.last_complete_step, names.empty() ? "" : format::encode_worker(names.back()));
  if (token > discoverer_.token()) discoverer_.move_token(std::move(token));
}

}  // namespace tornasole::trial
