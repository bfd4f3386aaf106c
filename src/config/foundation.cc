#include "config/foundation.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "config/schedules.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

constexpr std::int64_t kMaxWorkers = 65536;
// File names are made of the worker's name and some thirty characters more; 255 is the limit of common file systems.
constexpr std::size_t kMaxWorkerLength = 200;

constexpr std::array<std::string_view, 5> kFrameworkNames = {"cpp", "pytorch", "mxnet", "tensorflow", "xgboost"};

std::string lower(std::string_view text) {
  std::string lowered(trim(text));
  for (char& c : lowered) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

Status check_worker(const std::string& worker) {
  // A device string such as /job:worker/device:GPU:0 becomes a file name by an encoding of its own.
  const std::string_view extra = worker.front() == '/' ? "._-/:" : "._-";
  const bool is_good = worker.size() <= kMaxWorkerLength && std::all_of(worker.begin(), worker.end(), [&](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                extra.find(c) != extra.npos;
                       });
  if (is_good) return {};
  return invalid_error("{} is not allowed; allowed: up to {} letters, digits, . _ - (device names: / first, also / :)",
                       Json(worker, 0).to_message(), kMaxWorkerLength);
}

void set_identity(const HookOptions& options, Config* config, Problems* problems) {
  config->framework = options.framework;
  config->framework_version = options.framework_version;
  config->rank = options.rank;
  config->world_size = options.world_size;
  if (options.world_size < 1 || options.world_size > kMaxWorkers) {
    problems->add({"", 0, "world_size"}, invalid_error("{} is not allowed; allowed: an integer from 1 to {}",
                                                       options.world_size, kMaxWorkers));
  } else if (options.rank < 0 || options.rank >= options.world_size) {
    problems->add({"", 0, "rank"},
                  invalid_error("{} is not allowed; allowed: an integer from 0 to {}, below world_size", options.rank,
                                options.world_size - 1));
  }
  config->worker = options.worker.empty() ? "worker_" + std::to_string(options.rank) : options.worker;
  if (options.worker.empty()) return;
  if (auto checked = check_worker(options.worker); !checked) problems->add({"", 0, "worker"}, checked.error());
}

void set_log(const Environment& environment, Config* config, Problems* problems) {
  config->log_path = environment.get_twin("LOG_PATH");
  const auto level = environment.get_twin("LOG_LEVEL");
  if (!level) return;
  const std::string word = lower(*level);
  if (word == "off") {
    config->log_off = true;
  } else if (word == "debug") {
    config->log_level = LogLevel::kDebug;
  } else if (word == "warning") {
    config->log_level = LogLevel::kWarning;
  } else if (word == "error" || word == "critical") {
    config->log_level = LogLevel::kError;
  } else {
    config->log_level = LogLevel::kInfo;
    if (word != "info") {
      problems->warn({"", 0, "log level"}, Json(*level, 0).to_message() +
                                               " is unknown and counts as info; known: debug, info, warning, error, "
                                               "critical, off");
    }
  }
}

}  // namespace

Config start_config(const HookOptions& options, const Environment& environment, Problems* problems) {
  Config config;
  set_identity(options, &config, problems);
  const SaveConfigMode no_fields;
  config.schedules.fill(complete_schedule({&no_fields}, default_save_interval(options.framework)));
  if (const auto strict = environment.get_nonempty("TORNASOLE_STRICT")) {
    problems->take(read_bool(Json(*strict, 0)), {"", 0, "environment variable TORNASOLE_STRICT"}, &config.strict);
  }
  config.in_sagemaker = environment.get("TRAINING_JOB_NAME").has_value();
  config.metrics_dir = environment.get_nonempty("SAGEMAKER_METRICS_DIRECTORY").value_or(".");
  config.abort_if_strict = options.abort_if_strict;
  if (options.log_level) {
    config.log_level = *options.log_level;
  } else {
    set_log(environment, &config, problems);
  }
  return config;
}

void finish_config(Config* config, Problems* problems) {
  if (auto checked = check_pattern_count(*config); !checked) {
    problems->add({config->source, 0, ""}, checked.error());
  }
  if (config->framework == Framework::kXgboost) {
    // Trees have no tensors worth reducing: everything is small, and is saved whole.
    bool was_reduced = config->reductions != ReductionSpec{};
    config->reductions = {};
    for (CollectionSettings& collection : config->collections) {
      was_reduced = was_reduced || collection.reductions.has_value();
      collection.reductions.reset();
    }
    if (was_reduced)
      problems->warn({config->source, 0, ""}, "reductions are ignored for XGBoost: values are saved whole");
  }
  config->warnings = problems->warnings();
}

bool is_capture_enabled(const Environment& environment, std::vector<std::string>* warnings) {
  const auto text = environment.get_nonempty("USE_SMDEBUG");
  if (!text) return true;
  const std::string word = lower(*text);
  const auto is_one_of = [&word](const std::array<std::string_view, 6>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (is_one_of({"0", "n", "no", "f", "false", "off"})) return false;
  if (!is_one_of({"1", "y", "yes", "t", "true", "on"})) {
    warnings->push_back("environment variable USE_SMDEBUG: " + Json(*text, 0).to_message() +
                        " is neither yes nor no and counts as yes");
  }
  return true;
}

std::string_view framework_name(Framework framework) noexcept {
  return kFrameworkNames[static_cast<std::size_t>(framework)];
}

std::optional<Framework> parse_framework(std::string_view name) noexcept {
  const auto found = std::find(kFrameworkNames.begin(), kFrameworkNames.end(), name);
  if (found == kFrameworkNames.end()) return std::nullopt;
  return static_cast<Framework>(found - kFrameworkNames.begin());
}

std::string_view resolve_collection_alias(std::string_view name) noexcept {
  if (name == "bias") return "biases";
  if (name == "searchable_scalars") return "sm_metrics";
  return name;
}

}  // namespace tornasole::config
