// What a hook was told, and who it is among the workers.

#include <thread>
#include <utility>

#include "base/errors.h"
#include "capture/hook_state.h"
#include "config/environment.h"
#include "format/paths.h"
#include "tornasole/hook.h"

namespace tornasole {
namespace capture {
namespace {

constexpr std::int64_t kMaxWorkers = 65536;

std::string fsync_text(const config::Config& config) {
  switch (config.fsync) {
    case config::FsyncPolicy::kNone: return "none";
    case config::FsyncPolicy::kStep: return "step";
    case config::FsyncPolicy::kInterval: break;
  }
  return fmt::format("{}s", config.fsync_interval_s);
}

HookOptions options_of(const config::Config& config, const plan::Collections& collections) {
  HookOptions options;
  options.out_dir = config.out_dir;
  options.export_tensorboard = config.tensorboard_dir.has_value();
  options.tensorboard_dir = config.tensorboard_dir.value_or("");
  options.dry_run = config.dry_run;
  options.reduction_config = to_reduction_config(config.reductions);
  for (const Mode mode : kAllModes) {
    options.save_config.modes[mode] = to_save_config(config.schedules[mode_index(mode)]);
  }
  options.include_regex = config.include_regex;
  options.include_collections = {collections.included().begin(), collections.included().end()};
  options.save_all = config.save_all;
  options.include_workers = config.include_workers;
  options.framework = config.framework;
  options.framework_version = config.framework_version;
  options.rank = config.rank;
  options.world_size = config.world_size;
  options.worker = config.worker;
  options.fsync = fsync_text(config);
  options.when_full = config.when_full;
  options.queue_bytes = config.queue_bytes;
  options.queue_wait_ms = config.queue_wait_ms;
  options.close_wait_s = config.close_wait_s;
  options.spool_dir = config.spool_dir;
  options.spool_bytes = config.spool_bytes;
  options.readable_by_smdebug = config.readable_by_smdebug;
  options.resume = config.resume;
  options.shared = config.shared;
  options.flush_on_signal = config.flush_on_signal;
  options.honour_stop = config.honour_stop;
  options.reduce_threads = config.reduce_threads;
  options.max_bytes_per_step = config.max_bytes_per_step;
  options.max_bytes_per_run = config.max_bytes_per_run;
  options.keep_steps = config.keep_steps;
  options.flight_recorder_steps = config.flight_recorder_steps;
  options.flight_recorder_bytes = config.flight_recorder_bytes;
  options.flight_recorder_raw = config.flight_recorder_raw;
  options.derived = config.derived;
  options.capture_functional = config.capture_functional;
  options.stable_names = config.stable_names;
  options.warn_unmatched = config.warn_unmatched;
  options.rules = config.rules;
  options.log = nullptr;
  options.log_level = config.log_level;
  options.abort_if_strict = config.abort_if_strict;
  return options;
}

}  // namespace

HookOptions HookState::options() {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  return options_of(config_, collections_);
}

std::int64_t HookState::training_run() noexcept { return checkpoints_ ? checkpoints_->training_run() : 0; }

RunIdentity HookState::make_identity() const {
  RunIdentity identity;
  identity.worker = format::encode_worker(config_.worker);
  identity.is_chief = config_.rank == 0;
  identity.writer_count = config_.include_workers == IncludeWorkers::kAll ? config_.world_size : 1;
  identity.process = this_process();
  identity.run_id = make_run_id();
  identity.start_time = clock_->wall_seconds();
  identity.resume = config_.resume || is_resumed_;
  for (const Mode mode : kAllModes) {
    const std::int64_t step = mode_steps_[mode_index(mode)];
    if (identity.resume && step >= 0) identity.mode_steps[std::string(mode_name(mode))] = step;
  }
  identity.in_sagemaker = config_.in_sagemaker;
  return identity;
}

Status HookState::set_worker(std::int64_t rank, std::int64_t world_size) {
  if (is_inert()) return {};
  if (world_size < 1 || world_size > kMaxWorkers || rank < 0 || rank >= world_size) {
    return invalid_error("rank {} of {} workers is not allowed; allowed: a rank from 0 on, below the number of workers",
                         rank, world_size);
  }
  const std::lock_guard lock(mutex_);
  if (rank == config_.rank && world_size == config_.world_size) return {};
  if (writer_ && writer_->has_started()) {
    return runtime_error("this is worker {} of {} already and has written as such; it cannot become worker {} of {}",
                         config_.rank, config_.world_size, rank, world_size);
  }
  if (config_.worker == fmt::format("worker_{}", config_.rank)) config_.worker = fmt::format("worker_{}", rank);
  config_.rank = rank;
  config_.world_size = world_size;
  const bool was_writer = is_writer_;
  is_writer_ = config_.include_workers == IncludeWorkers::kAll || rank == 0;
  if (config_.dry_run) return {};
  if (writer_) {
    spare_store_ = writer_->release_store();
    retired_ = std::move(writer_);
  }
  if (!is_writer_) return {};
  const RunIdentity identity = make_identity();
  if (!was_writer) {
    const RunDirectory directory(spare_store_.get(), clock_, identity);
    if (identity.writer_count == 1) {
      TORNASOLE_CHECK(
          directory.check([](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }));
    }
  }
  writer_ = std::make_shared<Writer>(config_, std::move(spare_store_), clock_, identity, health_);
  return {};
}

}  // namespace capture

Result<ConfigFile> parse_config_file(std::string_view text, const std::string& file_name, Framework framework) {
  const config::Environment environment = config::Environment::from_process();
  TORNASOLE_TRY(const config::Config config,
                config::parse_config(text, file_name, {.framework = framework}, environment));
  TORNASOLE_TRY(const plan::Collections collections, plan::Collections::make(config));
  ConfigFile file{.options = capture::options_of(config, collections), .warnings = config.warnings};
  for (const config::CollectionSettings& settings : config.collections) {
    CollectionConfig& collection = file.collections.emplace_back();
    collection.name = settings.name;
    collection.include_regex = settings.include_regex;
    collection.save_histogram = settings.save_histogram.value_or(true);
    if (settings.reductions) collection.reduction_config = capture::to_reduction_config(*settings.reductions);
    for (const Mode mode : kAllModes) {
      const auto& schedule = settings.schedules[mode_index(mode)];
      if (!schedule) continue;
      if (!collection.save_config) collection.save_config.emplace();
      collection.save_config->modes[mode] = capture::to_save_config(*schedule);
    }
  }
  return file;
}

HookOptions Hook::options() const { return state_->options(); }
std::int64_t Hook::training_run() const noexcept { return state_->training_run(); }
std::optional<Error> Hook::first_error() const { return state_->first_error(); }
Status Hook::set_worker(std::int64_t rank, std::int64_t world_size) { return state_->set_worker(rank, world_size); }

bool Hook::go_on_in_child() { return state_->go_on_in_child(); }

}  // namespace tornasole
