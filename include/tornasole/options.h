#pragma once

// What a user can ask of a hook. HookOptions is the whole of it; the other structs are its parts. Every name is the
// one used in configuration files and in Python. A field left unset takes the default stated beside it.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole {

// The schedule of one mode. A mode step s is saved if it is in save_steps, or if start_step <= s < end_step and s is a
// multiple of save_interval. end_step <= 0 switches the schedule off, save_steps included.
struct SaveConfigMode {
  std::optional<std::int64_t> save_interval = {};            // 500 (XGBoost 10); at least 1
  std::optional<std::int64_t> start_step = {};               // 0
  std::optional<std::int64_t> end_step = {};                 // no end
  std::optional<std::vector<std::int64_t>> save_steps = {};  // none
  std::optional<std::vector<std::string>> when_nan = {};     // none: patterns of tensors to watch for NaN and infinity
  bool operator==(const SaveConfigMode&) const = default;
};

// A schedule for every mode; `modes` replaces it for the modes listed there. When only `modes` is set, the modes not
// listed are those of the hook (for a collection) or the defaults (for the hook).
struct SaveConfig {
  std::optional<std::int64_t> save_interval = {};
  std::optional<std::int64_t> start_step = {};
  std::optional<std::int64_t> end_step = {};
  std::optional<std::vector<std::int64_t>> save_steps = {};
  std::optional<std::vector<std::string>> when_nan = {};
  std::map<Mode, SaveConfigMode> modes = {};
  bool operator==(const SaveConfig&) const = default;
};

// In what form a tensor is saved. Without a ReductionConfig: the full tensor.
struct ReductionConfig {
  std::vector<std::string> reductions = {};      // of min max median mean std variance sum prod
  std::vector<std::string> abs_reductions = {};  // the same, of the magnitudes
  std::vector<std::string> norms = {};           // of l1 l2
  std::vector<std::string> abs_norms = {};
  bool save_raw_tensor = false;  // the full tensor too
  bool save_shape = false;       // the shape too
  bool operator==(const ReductionConfig&) const = default;
};

// A collection as a user describes it: what belongs to it, and when and in what form that is saved.
struct CollectionConfig {
  std::string name = {};
  std::vector<std::string> include_regex = {};           // a tensor belongs to it if one of these finds a match,
  std::vector<std::string> exclude_regex = {};           // and none of these,
  std::vector<std::string> tensor_names = {};            // or if it is named here
  std::optional<ReductionConfig> reduction_config = {};  // the hook's
  std::optional<SaveConfig> save_config = {};            // the hook's; the same for modes that are not in it
  bool save_histogram = true;
  bool operator==(const CollectionConfig&) const = default;
};

// Which built-in collections and patterns apply, and which collections are always saved.
enum class Framework { kCpp, kPytorch, kMxnet, kTensorflow, kXgboost };

enum class IncludeWorkers { kOne, kAll };
enum class WhenFull { kDrop, kBlock };

enum class LogLevel { kDebug, kInfo, kWarning, kError };
using LogHook = std::function<void(LogLevel level, std::string_view message)>;

// ---- parts of a configuration, each for itself

// The schedule with every field set but an end that is not there: what was left out has its default. kInvalid for a
// field that is not allowed.
TORNASOLE_EXPORT Result<SaveConfigMode> complete_save_config(const SaveConfigMode& fields,
                                                             Framework framework = Framework::kCpp);
TORNASOLE_EXPORT Status check_reduction_config(const ReductionConfig& config);
// "min,l1_norm,abs_max": reductions, norms, then those of the magnitudes, as configuration files list them.
TORNASOLE_EXPORT std::string reductions_text(const ReductionConfig& config);
// Adds what such a list names, in any spelling; blanks and empty items are ignored.
TORNASOLE_EXPORT Status add_reductions(std::string_view text, ReductionConfig* config);
// The number a text spells: decimal digits, perhaps a sign.
TORNASOLE_EXPORT Result<std::int64_t> parse_integer(std::string_view text);
// Another name for a collection becomes its own: bias is biases, searchable_scalars is sm_metrics.
TORNASOLE_EXPORT std::string_view collection_name(std::string_view name_or_alias) noexcept;
// Where the configuration file is: `path` if given, else from the environment, else SageMaker's place.
TORNASOLE_EXPORT std::string find_config_file(const std::string& path = {});
// False if USE_SMDEBUG says so: no automatic hook. `warning` is set if its text is neither yes nor no.
TORNASOLE_EXPORT bool is_capture_enabled(std::string* warning = nullptr);
// TORNASOLE_STRICT=1: no failure is swallowed.
TORNASOLE_EXPORT bool is_strict();
// cpp, pytorch, mxnet, tensorflow or xgboost.
TORNASOLE_EXPORT Result<Framework> framework_of(std::string_view name);

// The default log hook: warnings and errors to standard error, one line each. SMDEBUG_LOG_LEVEL changes the level.
TORNASOLE_EXPORT void log_to_stderr(LogLevel level, std::string_view message);

struct HookOptions {
  std::string out_dir = {};  // root of everything written; required, except in a SageMaker job
  bool export_tensorboard = false;
  std::string tensorboard_dir = {};  // <out_dir>/tensorboard
  bool dry_run = false;              // decide, log and estimate; write nothing
  std::optional<ReductionConfig> reduction_config = {};
  SaveConfig save_config = {};
  std::vector<std::string> include_regex = {};        // patterns added to the collection `default`, which is then saved
  std::vector<std::string> include_collections = {};  // saved besides those the framework always saves
  bool save_all = false;
  IncludeWorkers include_workers = IncludeWorkers::kOne;

  // Who writes. `worker` overrides the computed name worker_<rank> verbatim: letters, digits, . _ -
  Framework framework = Framework::kCpp;
  std::string framework_version = {};
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::string worker = {};

  // An unset option is taken from the environment (TORNASOLE_<NAME>), else it has the default stated here.
  std::optional<std::string> fsync = {};                   // "none"; "step"; "<n>s": group the syncs over n seconds
  std::optional<WhenFull> when_full = {};                  // kDrop
  std::optional<std::int64_t> queue_bytes = {};            // 256 MiB
  std::optional<std::int64_t> queue_wait_ms = {};          // 250
  std::optional<double> close_wait_s = {};                 // 5
  std::optional<std::string> spool_dir = {};               // none; for object stores
  std::optional<std::int64_t> spool_bytes = {};            // 1 GiB
  std::optional<bool> readable_by_smdebug = {};            // false: true widens the types smdebug cannot read
  std::optional<bool> resume = {};                         // false: true continues a dead run in the same directory
  std::optional<bool> shared = {};                         // false: true makes files readable by the group
  std::optional<bool> flush_on_signal = {};                // false: finish the queue on SIGTERM, SIGHUP, SIGINT
  std::optional<bool> honour_stop = {};                    // true: look for stop_request.json at saved steps
  std::optional<std::int64_t> reduce_threads = {};         // 1
  std::optional<std::int64_t> max_bytes_per_step = {};     // no limit
  std::optional<std::int64_t> max_bytes_per_run = {};      // no limit
  std::optional<std::int64_t> keep_steps = {};             // all; else the oldest published steps are removed
  std::optional<std::int64_t> flight_recorder_steps = {};  // 0: off
  std::optional<std::int64_t> flight_recorder_bytes = {};  // 64 MiB
  std::optional<bool> flight_recorder_raw = {};            // false: statistics only
  std::optional<std::vector<std::string>> derived = {};    // none
  std::optional<bool> capture_functional = {};             // false
  std::optional<bool> stable_names = {};                   // false
  std::optional<bool> warn_unmatched = {};                 // true
  std::optional<std::vector<std::string>> rules = {};      // none

  LogHook log = log_to_stderr;  // nullptr is silence
  // Set: `log` gets everything from this level on, and the SMDEBUG_LOG_ variables are its own affair.
  std::optional<LogLevel> log_level = {};
  // What TORNASOLE_STRICT=1 does at the first failure: abort the program, or keep it for Hook::first_error.
  bool abort_if_strict = true;
};

}  // namespace tornasole
