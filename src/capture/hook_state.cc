#include "capture/hook_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/hook_guard.h"
#include "capture/process_hooks.h"
#include "capture/run_resume.h"
#include "config/environment.h"
#include "format/model_file.h"
#include "format/paths.h"
#include "pattern/pattern.h"
#include "store/open_store.h"
#include "store/spool/spool_journal.h"

namespace tornasole::capture {
namespace {

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

Result<std::unique_ptr<store::Store>> open_store(const config::Config& config, const std::shared_ptr<Health>& health) {
  store::OpenStoreOptions options{.shared = config.shared,
                                  .environment = store::s3_environment(config::Environment::from_process())};
  if (config.spool_dir) {
    options.spool.directory = *config.spool_dir;
    options.spool.max_bytes = static_cast<std::uint64_t>(config.spool_bytes);
    options.spool.log = [health](std::string_view message) { health->log(LogLevel::kWarning, message); };
  }
  return store::open_store(config.location, std::move(options));
}

// What an earlier process, now dead, left for this location: it comes before anything of this run.
Status send_old_spools(const config::Config& config, store::Store& store, Health& health) {
  const std::string directory = fmt::format("{}/{}", *config.spool_dir, store::spool_name(config.location));
  TORNASOLE_TRY(const auto spools, store::find_spools(directory));
  for (const store::FoundSpool& spool : spools) {
    if (spool.owner.location != config.location || is_process_alive(spool.owner.process) != false) continue;
    store::SpoolDelivery delivery;
    if (const Status sent = store::deliver_spool(spool, store, &delivery); !sent.ok()) {
      return io_error("{}: an earlier run left files for {} that cannot be sent: {}", spool.directory, config.location,
                      sent.error().message);
    }
    health.log(LogLevel::kWarning, fmt::format("{} files that an earlier run left in {} were sent to {}",
                                               delivery.files, spool.directory, config.location));
    for (const std::string& problem : delivery.problems) {
      health.log(LogLevel::kWarning, fmt::format("{}: not sent: {}", spool.directory, problem));
    }
  }
  return {};
}

Status check_supported(const config::Config& config) {
  if (!config.rules.empty()) {
    return unsupported_error(
        "rules: a configuration cannot start rules inside the training; allowed: InProcessRules::start in C++, "
        "Hook(rules=[...]) in Python");
  }
  // A bucket that cannot be, no libcurl: said now and not at the first summary.
  if (config.tensorboard_dir && !config.dry_run) return check_summary_root(*config.tensorboard_dir);
  return {};
}

// The user's log hook, and besides it the file that SMDEBUG_LOG_PATH names.
Result<LogHook> make_log(const config::Config& config, LogHook log) {
  if (config.log_off) return LogHook();
  if (!config.log_path) return log;
  // Shared: the hook is copied with every copy of the function.
  const std::shared_ptr<std::FILE> file(std::fopen(config.log_path->c_str(), "ae"), [](std::FILE* open) {
    if (open != nullptr) std::fclose(open);
  });
  if (file == nullptr) return errno_error(errno, fmt::format("the log file '{}'", *config.log_path));
  return LogHook([file, log = std::move(log)](LogLevel level, std::string_view message) {
    constexpr std::array<const char*, 4> kNames = {"debug", "info", "warning", "error"};
    std::fprintf(file.get(), "%s: %s\n", kNames[static_cast<std::size_t>(level)], printable(message).c_str());
    std::fflush(file.get());
    if (log) log(level, message);
  });
}

format::StoredCollection to_stored(const plan::Collection& collection) {
  format::StoredCollection stored;
  stored.name = collection.name;
  stored.include_regex = collection.include_regex;
  stored.exclude_regex = collection.exclude_regex;
  stored.tensor_names = collection.all_names();
  stored.reductions = collection.reductions;
  stored.save_histogram = collection.save_histogram;
  stored.schedules.emplace();
  for (const Mode mode : kAllModes) {
    const auto& schedule = collection.schedules[mode_index(mode)];
    if (!schedule) continue;
    (*stored.schedules)[mode_index(mode)] = {schedule->save_interval, schedule->start_step, schedule->end_step,
                                             schedule->save_steps, schedule->when_nan};
  }
  return stored;
}

}  // namespace

HookState::HookState(config::Config config, std::shared_ptr<Health> health, plan::Collections collections,
                     const Clock* clock)
    : config_(std::move(config)),
      health_(std::move(health)),
      clock_(clock),
      exceptions_at_open_(std::uncaught_exceptions()),
      start_ns_(clock->monotonic_ns()),
      statistics_(parse_statistics(config_.derived)),
      keeps_previous_(compare_with_previous(statistics_)),
      collections_(std::move(collections)),
      recorder_(config_.flight_recorder_steps, config_.flight_recorder_bytes),
      kept_(static_cast<std::size_t>(config_.queue_bytes)) {
  is_writer_ = config_.include_workers == IncludeWorkers::kAll || config_.rank == 0;
}

Result<std::unique_ptr<HookState>> HookState::open(config::Config config, LogHook log, HookDependencies dependencies) {
  TORNASOLE_CHECK(check_supported(config));
  const Clock* clock = dependencies.clock != nullptr ? dependencies.clock : &system_clock();
  TORNASOLE_TRY(LogHook sink, make_log(config, std::move(log)));
  auto health = std::make_shared<Health>(
      Health::Options{.log = std::move(sink),
                      .log_level = config.log_level,
                      .is_strict = config.strict && config.abort_if_strict,
                      .gap_level = config.warn_unmatched ? LogLevel::kWarning : LogLevel::kInfo});
  for (const std::string& warning : config.warnings) health->log(LogLevel::kWarning, warning);
  TORNASOLE_TRY(plan::Collections collections, plan::Collections::make(config));
  std::unique_ptr<HookState> hook(new HookState(std::move(config), health, std::move(collections), clock));
  const config::Config& settings = hook->config_;

  if (settings.checkpoint_dir) {
    hook->checkpoints_.emplace(*settings.checkpoint_dir);
    std::vector<std::string> warnings;
    TORNASOLE_TRY(const auto record, hook->checkpoints_->load(&warnings));
    for (const std::string& warning : warnings) health->log(LogLevel::kWarning, warning);
    if (record) {
      hook->is_resumed_ = true;
      hook->global_step_ = record->last_seen;
      hook->last_saved_ = record->last_saved.value_or(-1);
      for (const auto& [mode, step] : record->mode_steps) hook->mode_steps_[mode_index(mode)] = step;
      hook->mode_steps_[mode_index(Mode::kGlobal)] = record->last_seen;
    }
  }
  if (settings.dry_run) return hook;
  if (dependencies.store == nullptr) {
    TORNASOLE_TRY(dependencies.store, open_store(settings, health));
  }
  if (settings.spool_dir && store::is_s3_location(settings.location) && settings.rank == 0) {
    TORNASOLE_CHECK(send_old_spools(settings, *dependencies.store, *health));
  }
  if (hook->is_writer_) {
    if (settings.rank == 0) supersede_hook_at(settings.location);
    RunIdentity identity = hook->make_identity();
    RunDirectory directory(dependencies.store.get(), clock, identity);
    // With several workers the old content is the chief's affair, at its first write.
    if (identity.writer_count == 1) TORNASOLE_CHECK(directory.check(sleep_seconds));
    if (settings.resume && !hook->is_resumed_) {
      TORNASOLE_TRY(const ResumePoint point, find_resume_point(*dependencies.store, identity));
      hook->global_step_ = point.last_step;
      for (const auto& [mode, step] : point.mode_steps) hook->mode_steps_[mode_index(mode)] = step;
      hook->mode_steps_[mode_index(Mode::kGlobal)] = point.last_step;
      identity = hook->make_identity();
    }
    hook->writer_ = std::make_shared<Writer>(settings, std::move(dependencies.store), clock, identity, health);
  } else {
    hook->spare_store_ = std::move(dependencies.store);
  }
  if (settings.flush_on_signal) TORNASOLE_CHECK(watch_signals());
  register_hook(hook.get());
  return hook;
}

HookState::~HookState() { unregister_hook(this); }

// ---- collections

Status HookState::change_collection(std::string_view name, const std::function<Status(plan::Collection&)>& change) {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  plan::Collection& collection = collections_.get(name);
  plan::Collection changed = collection;
  TORNASOLE_CHECK(change(changed));
  for (const auto* patterns : {&changed.include_regex, &changed.exclude_regex}) {
    for (const std::string& pattern : *patterns) {
      if (auto compiled = pattern::Pattern::compile(pattern); !compiled.ok()) return std::move(compiled).error();
    }
  }
  collection = std::move(changed);
  collections_.touch();
  return {};
}

plan::Collection HookState::collection(std::string_view name) {
  if (is_inert()) return plan::Collection{.name = std::string(name)};
  const std::lock_guard lock(mutex_);
  if (plan_) plan_->publish_names();
  const plan::Collection* found = collections_.find(name);
  return found != nullptr ? *found : plan::Collection{.name = std::string(name)};
}

std::vector<std::string> HookState::collection_names() {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const plan::Collection& collection : collections_.all()) names.push_back(collection.name);
  return names;
}

bool HookState::needs_export_locked() const {
  return !is_exported_ || exported_version_ != collections_.version() ||
         exported_names_ != infos_.size() + scalar_names_.size();
}

std::shared_ptr<const format::CollectionsFile> HookState::export_collections_locked() {
  if (plan_) plan_->publish_names();
  auto file = std::make_shared<format::CollectionsFile>();
  file->num_workers = config_.include_workers == IncludeWorkers::kAll ? config_.world_size : 1;
  for (const plan::Collection& collection : collections_.all()) file->collections.push_back(to_stored(collection));
  is_exported_ = true;
  exported_version_ = collections_.version();
  exported_names_ = infos_.size() + scalar_names_.size();
  return file;
}

// ---- facts

void HookState::describe_model(const ModelDescription& model) noexcept {
  guarded("describe_model", [&] {
    std::string text = format::encode_model(model, config::framework_name(config_.framework), config_.world_size);
    const std::lock_guard lock(mutex_);
    if (!statistics_.empty()) roles_.describe(model);
    if (!writer_ || text == model_text_) return;
    model_text_ = text;
    writer_->push(ModelJob{std::move(text)}, 0, JobQueue::Wake::kSoon);
  });
}

void HookState::export_collections() noexcept {
  guarded("export_collections", [&] {
    const std::lock_guard lock(mutex_);
    if (!writer_ || !needs_export_locked()) return;
    const bool has_saved = is_exported_;
    writer_->push(CollectionsJob{export_collections_locked()}, 0, JobQueue::Wake::kSoon);
    is_exported_ = has_saved;  // the first step that is saved exports them again, with the names in it
  });
}

void HookState::set_facts(const StepFacts& facts) noexcept {
  guarded("set_facts", [&] {
    const std::lock_guard lock(mutex_);
    if (step_.is_open) step_.facts = facts;
  });
}

Mode HookState::mode() noexcept {
  if (is_inert()) return Mode::kGlobal;  // the lock may be held for ever
  const std::lock_guard lock(mutex_);
  return mode_;
}
std::int64_t HookState::step() noexcept {
  if (is_inert()) return -1;
  const std::lock_guard lock(mutex_);
  return global_step_;
}
std::int64_t HookState::mode_step(Mode mode) noexcept {
  if (is_inert()) return -1;
  const std::lock_guard lock(mutex_);
  return mode_steps_[mode_index(mode)];
}
std::int64_t HookState::last_saved_step() noexcept {
  if (is_inert()) return -1;
  const std::lock_guard lock(mutex_);
  return last_saved_;
}

// ---- the end

Status HookState::close(const Ending& ending) noexcept {
  if (is_inert() || is_closed_.exchange(true)) return {};
  // The run is the parent's, or another child's, as long as this one has not written.
  if (is_inherited_ && !writer_->has_started()) return {};
  CloseJob job{.is_failed = ending.is_failed, .is_superseded = ending.is_superseded};
  // Each part is tried whatever became of the one before: a step that cannot be ended must not keep the run open.
  try {
    std::unique_lock lock(mutex_);
    if (step_.is_open) end_step_locked(lock, ending.is_open_step_partial);
    if (ending.is_failed && recorder_.is_on()) write_recorded_locked();
    flush_late_scalars_locked(lock);
    report_coverage_locked(/*is_final=*/true);
  } catch (...) {
    health_->note("close", error_from_current_exception());
  }
  bool is_finished = writer_ == nullptr;
  try {
    const std::lock_guard lock(mutex_);
    if (writer_) writer_->keep(std::move(chunk_));
    job.reason = ending.reason;
    if (writer_ && needs_export_locked()) job.collections = export_collections_locked();
  } catch (...) {
    health_->note("close", error_from_current_exception());
  }
  try {
    if (writer_) is_finished = writer_->close(std::move(job), ending.wait_s);
  } catch (...) {
    health_->note("close", error_from_current_exception());
  }
  if (!is_finished || (writer_ && health_->unaccounted_steps() > 0)) count_unfinished(is_finished, ending.wait_s);
  try {
    const std::optional<Error> first = health_->first_error();
    return first ? Status(*first) : Status();
  } catch (...) {
    return Error{};  // there was one, and there is no memory to say which
  }
}

bool HookState::go_on_in_child() {
  // Only a claim tells children apart, and there is one where a lone worker writes to a disk.
  if (!is_inert() || !is_untouched_ || !writer_->store().capabilities().can_claim) return false;
  const RunIdentity identity = make_identity();
  if (identity.writer_count != 1) return false;
  is_untouched_ = false;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<store::Store> store = writer_->release_store();
  retired_ = std::move(writer_);
  writer_ = std::make_shared<Writer>(config_, std::move(store), clock_, identity, health_);
  is_inherited_ = true;
  is_inert_ = false;
  register_hook(this);
  return true;
}

// What the writer did not get to is lost, and counted so.
void HookState::count_unfinished(bool is_finished, double wait_s) noexcept {
  Error why{.code = ErrorCode::kIo, .message = {}};
  try {
    why = is_finished ? io_error("memory ran out while writing to {}", writer_->store().description())
                      : io_error("{} did not take what was queued within {} s of closing",
                                 writer_->store().description(), wait_s);
  } catch (...) {
    health_->note("close", why);  // no memory for the text; the steps are counted all the same
  }
  // A writer that finished all the same had no memory left to count what it lost.
  health_->give_up_steps(is_finished ? "out_of_memory" : "close_timeout", why);
}

void HookState::flush_for_signal(int signal_number, double seconds) noexcept {
  if (is_inert() || is_closed_ || !writer_) return;
  try {
    // The interrupted thread may hold the lock and never run again.
    const std::int64_t deadline = clock_->monotonic_ns() + static_cast<std::int64_t>(seconds * 0.3e9);
    std::unique_lock lock(mutex_, std::try_to_lock);
    while (!lock.owns_lock() && clock_->monotonic_ns() < deadline) {
      sleep_seconds(0.001);
      lock.try_lock();
    }
    if (lock.owns_lock()) {
      if (step_.is_open) end_step_locked(lock, /*is_partial=*/true);
      if (recorder_.is_on()) write_recorded_locked();
      lock.unlock();
    }
    writer_->push(FlushJob{fmt::format("signal {}", signal_number)}, 0, JobQueue::Wake::kNow);
    writer_->wait_idle(seconds * 0.7);
  } catch (...) {
    health_->note("signal", error_from_current_exception());
  }
}

void HookState::become_inert() noexcept {
  is_inert_ = true;
  // Locks that another thread of the parent holds are held for ever.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  is_untouched_ = lock.owns_lock() && !is_closed_ && writer_ && writer_->is_untouched();
  // The thread does not exist here, and joining, detaching or waking it would fail: the child keeps the memory for
  // ever, so that nothing of it is ever destroyed.
  [[maybe_unused]] auto* kept = new std::shared_ptr<Writer>(writer_);
}

}  // namespace tornasole::capture
