// Parts of a configuration for those who hold them one by one, as the Python classes do.

#include <array>

#include "base/errors.h"
#include "base/json.h"
#include "config/config.h"
#include "config/environment.h"
#include "config/reductions.h"
#include "config/schedules.h"
#include "config/values.h"
#include "tornasole/options.h"

namespace tornasole {

Result<SaveConfigMode> complete_save_config(const SaveConfigMode& fields, Framework framework) {
  const SaveConfig every_mode{.save_interval = fields.save_interval,
                              .start_step = fields.start_step,
                              .end_step = fields.end_step,
                              .save_steps = fields.save_steps,
                              .when_nan = fields.when_nan};
  TORNASOLE_TRY(const config::Schedules schedules,
                config::make_schedules(every_mode, config::default_save_interval(framework)));
  const config::Schedule& schedule = *schedules.front();
  // The listed steps in the order they were given: the sorted list is the plan's.
  return SaveConfigMode{schedule.save_interval, schedule.start_step, schedule.end_step,
                        fields.save_steps.value_or(std::vector<std::int64_t>{}), schedule.when_nan};
}

Status check_reduction_config(const ReductionConfig& config) {
  TORNASOLE_CHECK(config::make_reduction_spec(config));
  return {};
}

std::string reductions_text(const ReductionConfig& config) {
  std::string text;
  const auto add = [&text](const std::vector<std::string>& items, bool of_absolute) {
    for (const std::string& item : items) {
      const auto kind = parse_reduction_kind(item);
      if (!text.empty()) text += ",";
      text += kind ? reduction_config_text({*kind, of_absolute}) : item;
    }
  };
  add(config.reductions, false);
  add(config.norms, false);
  add(config.abs_reductions, true);
  add(config.abs_norms, true);
  return text;
}

Status add_reductions(std::string_view text, ReductionConfig* config) {
  TORNASOLE_TRY(const std::vector<Reduction> reductions, config::read_reductions(Json(std::string(text), 0)));
  for (const Reduction& reduction : reductions) {
    auto& of_kind = is_norm(reduction.kind) ? (reduction.of_absolute ? config->abs_norms : config->norms)
                                            : (reduction.of_absolute ? config->abs_reductions : config->reductions);
    of_kind.emplace_back(reduction_kind_name(reduction.kind));
  }
  return {};
}

Result<std::int64_t> parse_integer(std::string_view text) { return config::read_integer(Json(std::string(text), 0)); }

std::string_view collection_name(std::string_view name_or_alias) noexcept {
  return config::resolve_collection_alias(name_or_alias);
}

std::string find_config_file(const std::string& path) {
  return config::find_config_file(path, config::Environment::from_process());
}

bool is_capture_enabled(std::string* warning) {
  std::vector<std::string> warnings;
  const bool is_enabled = config::is_capture_enabled(config::Environment::from_process(), &warnings);
  if (warning != nullptr && !warnings.empty()) *warning = std::move(warnings.front());
  return is_enabled;
}

bool is_strict() {
  const auto text = config::Environment::from_process().get_nonempty("TORNASOLE_STRICT");
  return text && config::read_bool(Json(*text, 0)).ok() && *config::read_bool(Json(*text, 0));
}

Result<Framework> framework_of(std::string_view name) {
  if (const auto framework = config::parse_framework(name)) return *framework;
  return invalid_error("the framework {} is not known; known: cpp, pytorch, mxnet, tensorflow, xgboost",
                       Json(std::string(name), 0).to_message());
}

}  // namespace tornasole
