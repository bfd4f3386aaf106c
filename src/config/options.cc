// HookOptions -> Config.

#include <algorithm>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/engine_options.h"
#include "config/environment.h"
#include "config/foundation.h"
#include "config/locations.h"
#include "config/schedules.h"

namespace tornasole::config {
namespace {

void set_location(const HookOptions& options, const Environment& environment, Config* config, Problems* problems) {
  const Place place{"", 0, "out_dir"};
  std::string given = options.out_dir;
  if (given.empty() && config->in_sagemaker) given = kSageMakerOutDir;
  if (given.empty()) {
    problems->add(place, runtime_error("not given; allowed: a directory or s3://<bucket>/<prefix> (outside a SageMaker "
                                       "job there is no default)"));
  } else {
    set_out_dir(given, place, environment, config, problems);
  }
  set_tensorboard_dir(options.export_tensorboard, options.tensorboard_dir, {"", 0, "tensorboard_dir"}, environment,
                      config, problems);
}

void set_form_and_schedule(const HookOptions& options, Config* config, Problems* problems) {
  if (options.reduction_config) {
    problems->take(make_reduction_spec(*options.reduction_config), {"", 0, "reduction_config"}, &config->reductions);
  }
  Schedules schedules;
  const std::int64_t interval = default_save_interval(options.framework);
  if (!problems->take(make_schedules(options.save_config, interval), {"", 0, "save_config"}, &schedules)) return;
  for (const Mode mode : kAllModes) {
    if (auto& schedule = schedules[mode_index(mode)]) config->schedules[mode_index(mode)] = std::move(*schedule);
  }
}

void set_selection(const HookOptions& options, Config* config, Problems* problems) {
  for (const std::string& pattern : options.include_regex) {
    if (auto checked = check_pattern(pattern); !checked) problems->add({"", 0, "include_regex"}, checked.error());
  }
  config->include_regex = options.include_regex;
  for (const std::string& given : options.include_collections) {
    if (given.empty() || !is_valid_utf8(given)) {
      problems->add({"", 0, "include_collections"},
                    invalid_error("the item {} is not allowed; allowed: names in UTF-8", Json(given, 0).to_message()));
      continue;
    }
    const std::string_view name = resolve_collection_alias(given);
    auto& names = config->include_collections;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  config->save_all = options.save_all;
  config->include_workers = options.include_workers;
  config->dry_run = options.dry_run;
}

void note_origins(const HookOptions& options, Config* config) {
  const auto note = [config](const char* key, bool is_given) {
    if (is_given) config->origins[key] = "argument";
  };
  note("out_dir", !options.out_dir.empty());
  note("export_tensorboard", options.export_tensorboard);
  note("tensorboard_dir", !options.tensorboard_dir.empty());
  note("dry_run", options.dry_run);
  note("reductions", options.reduction_config.has_value());
  note("save_config", options.save_config != SaveConfig{});
  note("include_regex", !options.include_regex.empty());
  note("include_collections", !options.include_collections.empty());
  note("save_all", options.save_all);
  note("include_workers", options.include_workers != IncludeWorkers::kOne);
}

}  // namespace

Result<Config> make_config(const HookOptions& options, const Environment& environment) {
  Problems problems;
  Config config = start_config(options, environment, &problems);
  set_location(options, environment, &config, &problems);
  set_form_and_schedule(options, &config, &problems);
  set_selection(options, &config, &problems);
  note_origins(options, &config);
  apply_checkpoint_file(environment, &config, &problems);
  apply_engine_options(options, environment, {}, &config, &problems);
  finish_config(&config, &problems);
  if (!problems.errors().empty()) return problems.first_error();
  return config;
}

}  // namespace tornasole::config
