#pragma once

// Config: everything a hook needs to know, checked and complete. Made once, from HookOptions or from a configuration
// file, with the environment and the defaults; never changed afterwards.
//
//   in:  HookOptions or the text of a JSON file, an Environment (config/environment.h)
//   out: Config, or an Error that names file, line, key, value and what is allowed
//   who: capture/hook.cc, cli

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problems.h"
#include "tensor/reduction_spec.h"
#include "tornasole/mode.h"
#include "tornasole/options.h"
#include "tornasole/result.h"

namespace tornasole::config {

class Environment;

// The complete schedule of one mode.
struct Schedule {
  std::int64_t save_interval = 500;
  std::int64_t start_step = 0;
  std::optional<std::int64_t> end_step = {};
  std::vector<std::int64_t> save_steps = {};  // sorted, each once
  std::vector<std::string> when_nan = {};
  bool operator==(const Schedule&) const = default;
};
// By mode_index; an unset mode is filled from the hook's schedules when the collections are prepared.
using Schedules = std::array<std::optional<Schedule>, 4>;
using CompleteSchedules = std::array<Schedule, 4>;

// What a configuration file says of one collection. The same name twice is merged already.
struct CollectionSettings {
  std::string name = {};
  std::vector<std::string> include_regex = {};
  std::optional<ReductionSpec> reductions = {};
  std::optional<bool> save_histogram = {};
  Schedules schedules = {};
};

enum class FsyncPolicy { kNone, kStep, kInterval };

struct Config {
  Framework framework = Framework::kCpp;
  std::string framework_version = {};
  std::string out_dir = {};                         // as given, ~ expanded
  std::string location = {};                        // absolute, fixed now; or s3://...
  std::optional<std::string> tensorboard_dir = {};  // set: TensorBoard output is on, and goes there; absolute or s3://
  bool dry_run = false;
  ReductionSpec reductions = {};
  CompleteSchedules schedules = {};
  std::vector<std::string> include_regex = {};
  std::vector<std::string> include_collections = {};  // as asked, aliases resolved; the framework's defaults are plan's
  bool save_all = false;
  IncludeWorkers include_workers = IncludeWorkers::kOne;
  std::vector<CollectionSettings> collections = {};  // from the file, in its order; each also in include_collections
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::string worker = {};  // worker_<rank>, unless overridden

  FsyncPolicy fsync = FsyncPolicy::kNone;
  double fsync_interval_s = 0;
  WhenFull when_full = WhenFull::kDrop;
  std::int64_t queue_bytes = std::int64_t{256} << 20;
  std::int64_t queue_wait_ms = 250;
  double close_wait_s = 5;
  std::optional<std::string> spool_dir = {};
  std::int64_t spool_bytes = std::int64_t{1} << 30;
  bool readable_by_smdebug = false;
  bool resume = false;
  bool shared = false;
  bool flush_on_signal = false;
  bool honour_stop = true;
  std::int64_t reduce_threads = 1;
  std::optional<std::int64_t> max_bytes_per_step = {};
  std::optional<std::int64_t> max_bytes_per_run = {};
  std::optional<std::int64_t> keep_steps = {};
  std::int64_t flight_recorder_steps = 0;
  std::int64_t flight_recorder_bytes = std::int64_t{64} << 20;
  bool flight_recorder_raw = false;
  std::vector<std::string> derived = {};
  bool capture_functional = false;
  bool stable_names = false;
  bool warn_unmatched = true;
  std::vector<std::string> rules = {};

  bool strict = false;  // TORNASOLE_STRICT=1
  bool abort_if_strict = true;
  bool in_sagemaker = false;                       // TRAINING_JOB_NAME is set
  std::string metrics_dir = ".";                   // SAGEMAKER_METRICS_DIRECTORY
  std::optional<std::string> checkpoint_dir = {};  // LocalPath of the checkpoint configuration
  LogLevel log_level = LogLevel::kWarning;
  bool log_off = false;
  std::optional<std::string> log_path = {};
  std::string source = {};  // the file it came from; empty for options
  // Where a value that is no default came from, for people: "line 7", "TORNASOLE_FSYNC", "argument". The keys are those
  // of HookParameters, LocalPath, and <collection>.<key>.
  std::map<std::string, std::string> origins = {};
  std::vector<std::string> warnings = {};  // to be logged once, by whoever opens the hook
};

// From the options of a constructor.
Result<Config> make_config(const HookOptions& options, const Environment& environment);
// From the text of a configuration file. `options` gives what a file cannot: framework, version, rank, world size,
// worker.
Result<Config> parse_config(std::string_view text, const std::string& file_name, const HookOptions& options,
                            const Environment& environment);
// Every error of the file, not only the first: what `tornasole config check` prints. Empty when it is sound.
std::vector<Error> check_config(std::string_view text, const std::string& file_name, const HookOptions& options,
                                const Environment& environment);
// The same in one, for showing: every error with its place, every warning, and what could be read.
struct Inspection {
  std::optional<Config> config = {};  // unset if the text is no JSON; not fit for use while there are errors
  std::vector<Problem> errors = {};
  std::vector<std::string> warnings = {};
};
Inspection inspect_config(std::string_view text, const std::string& file_name, const HookOptions& options,
                          const Environment& environment);
// The text of a configuration file: kNotFound if there is none, kIo if it is no readable regular file of at most 1 MiB.
Result<std::string> read_config_file(const std::string& path, const Environment& environment);
// Where the configuration file is: `path` if given, else from the environment, else SageMaker's place.
std::string find_config_file(const std::string& path, const Environment& environment);

// Complete schedules out of what a user wrote for a hook or a collection; unset modes stay unset.
Result<Schedules> make_schedules(const SaveConfig& config, std::int64_t default_interval);
Result<ReductionSpec> make_reduction_spec(const ReductionConfig& config);
// Text that is neither yes nor no counts as yes and adds a warning.
bool is_capture_enabled(const Environment& environment, std::vector<std::string>* warnings);

// "cpp", "pytorch", "mxnet", "tensorflow", "xgboost".
std::string_view framework_name(Framework framework) noexcept;
std::optional<Framework> parse_framework(std::string_view name) noexcept;

// 10 for XGBoost, else 500.
std::int64_t default_save_interval(Framework framework) noexcept;
// bias -> biases, searchable_scalars -> sm_metrics; others unchanged.
std::string_view resolve_collection_alias(std::string_view name) noexcept;

}  // namespace tornasole::config
