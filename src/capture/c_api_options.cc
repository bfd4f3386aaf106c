// The options handle of the C interface. Every option passes through the readers of configuration files, so that a text
// means here what it means there.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/errors.h"
#include "capture/c_api.h"
#include "capture/hook_state.h"
#include "config/config.h"
#include "config/engine_options.h"
#include "config/file_parameters.h"
#include "config/problems.h"
#include "config/values.h"

namespace tornasole::capture {
namespace {

// ---- engine options: from a value of any spelling to the typed field; make_config checks the ranges

Status read(const Json& value, std::optional<std::string>* out) {
  TORNASOLE_TRY(*out, config::read_text(value));
  return {};
}
Status read(const Json& value, std::optional<std::int64_t>* out) {
  TORNASOLE_TRY(*out, config::read_integer(value));
  return {};
}
Status read(const Json& value, std::optional<double>* out) {
  TORNASOLE_TRY(*out, config::read_number(value, -1e300, 1e300));
  return {};
}
Status read(const Json& value, std::optional<bool>* out) {
  TORNASOLE_TRY(*out, config::read_bool(value));
  return {};
}
Status read(const Json& value, std::optional<std::vector<std::string>>* out) {
  TORNASOLE_TRY(*out, config::read_texts(value));
  return {};
}
Status read(const Json& value, std::optional<WhenFull>* out) {
  static constexpr std::array<std::string_view, 2> kAllowed = {"drop", "block"};
  TORNASOLE_TRY(const std::size_t choice, config::read_choice(value, kAllowed));
  *out = choice == 0 ? WhenFull::kDrop : WhenFull::kBlock;
  return {};
}

template <auto Member>
Status set_member(const Json& value, HookOptions* options) {
  return read(value, &(options->*Member));
}

struct Setter {
  std::string_view name;
  Status (*set)(const Json&, HookOptions*);
};
using O = HookOptions;
constexpr std::array kEngineSetters = {
    Setter{"fsync", set_member<&O::fsync>},
    Setter{"when_full", set_member<&O::when_full>},
    Setter{"queue_bytes", set_member<&O::queue_bytes>},
    Setter{"queue_wait_ms", set_member<&O::queue_wait_ms>},
    Setter{"close_wait_s", set_member<&O::close_wait_s>},
    Setter{"spool_dir", set_member<&O::spool_dir>},
    Setter{"spool_bytes", set_member<&O::spool_bytes>},
    Setter{"readable_by_smdebug", set_member<&O::readable_by_smdebug>},
    Setter{"resume", set_member<&O::resume>},
    Setter{"shared", set_member<&O::shared>},
    Setter{"flush_on_signal", set_member<&O::flush_on_signal>},
    Setter{"honour_stop", set_member<&O::honour_stop>},
    Setter{"reduce_threads", set_member<&O::reduce_threads>},
    Setter{"max_bytes_per_step", set_member<&O::max_bytes_per_step>},
    Setter{"max_bytes_per_run", set_member<&O::max_bytes_per_run>},
    Setter{"keep_steps", set_member<&O::keep_steps>},
    Setter{"flight_recorder_steps", set_member<&O::flight_recorder_steps>},
    Setter{"flight_recorder_bytes", set_member<&O::flight_recorder_bytes>},
    Setter{"flight_recorder_raw", set_member<&O::flight_recorder_raw>},
    Setter{"derived", set_member<&O::derived>},
    Setter{"capture_functional", set_member<&O::capture_functional>},
    Setter{"stable_names", set_member<&O::stable_names>},
    Setter{"warn_unmatched", set_member<&O::warn_unmatched>},
    Setter{"rules", set_member<&O::rules>},
};

// ---- what a configuration file says elsewhere, or cannot say

template <auto Member>
Status set_text(const Json& value, HookOptions* options) {
  TORNASOLE_TRY(options->*Member, config::read_text(value));
  return {};
}
template <auto Member>
Status set_integer(const Json& value, HookOptions* options) {
  TORNASOLE_TRY(options->*Member, config::read_integer(value));
  return {};
}
Status set_collections(const Json& value, HookOptions* options) {
  TORNASOLE_TRY(options->include_collections, config::read_texts(value));
  return {};
}
Status set_framework(const Json& value, HookOptions* options) {
  static constexpr std::array<std::string_view, 5> kAllowed = {"cpp", "pytorch", "mxnet", "tensorflow", "xgboost"};
  TORNASOLE_TRY(const std::size_t choice, config::read_choice(value, kAllowed));
  options->framework = *config::parse_framework(kAllowed[choice]);
  return {};
}
constexpr std::array kOwnSetters = {
    Setter{"out_dir", set_text<&O::out_dir>},
    Setter{"include_collections", set_collections},
    Setter{"rank", set_integer<&O::rank>},
    Setter{"world_size", set_integer<&O::world_size>},
    Setter{"worker", set_text<&O::worker>},
    Setter{"framework", set_framework},
    Setter{"framework_version", set_text<&O::framework_version>},
};

const Setter* find_setter(std::span<const Setter> setters, std::string_view name) {
  const auto found = std::find_if(setters.begin(), setters.end(), [&](const Setter& s) { return s.name == name; });
  return found == setters.end() ? nullptr : &*found;
}

const std::vector<std::string>& option_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names = {"export_tensorboard", "tensorboard_dir", "dry_run",
                                      "save_all",           "include_regex",   "include_workers",
                                      "reductions",         "save_raw_tensor", "save_shape"};
    for (const char* mode : {"", "train.", "eval.", "predict.", "global."}) {
      for (const char* field : {"save_interval", "start_step", "end_step", "save_steps", "when_nan"}) {
        names.push_back(std::string(mode) + field);
      }
    }
    for (const Setter& setter : kOwnSetters) names.emplace_back(setter.name);
    for (const Setter& setter : kEngineSetters) names.emplace_back(setter.name);
    return names;
  }();
  return kNames;
}

Status check_name(std::string_view name) {
  const auto& names = option_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  const std::string_view nearest = config::nearest_key(name, names);
  return invalid_error(
      "'{}' is no option; {}", config::shown_key(name),
      nearest.empty() ? std::string("tornasole/c.h lists them") : fmt::format("did you mean {}?", nearest));
}

template <typename T>
void take_if_set(std::optional<T>* from, std::optional<T>* to) {
  if (*from) *to = std::move(*from);
}

void merge(SaveConfigMode from, SaveConfigMode* to) {
  take_if_set(&from.save_interval, &to->save_interval);
  take_if_set(&from.start_step, &to->start_step);
  take_if_set(&from.end_step, &to->end_step);
  take_if_set(&from.save_steps, &to->save_steps);
  take_if_set(&from.when_nan, &to->when_nan);
}

void merge(config::HookParameters parameters, std::string_view name, tornasole_options* handle) {
  HookOptions& options = handle->options;
  merge(std::move(parameters.schedule.every_mode), &handle->schedule.every_mode);
  for (std::size_t mode = 0; mode < kAllModes.size(); ++mode) {
    merge(std::move(parameters.schedule.by_mode[mode]), &handle->schedule.by_mode[mode]);
  }
  take_if_set(&parameters.reductions.reductions, &handle->reductions.reductions);
  take_if_set(&parameters.reductions.save_raw_tensor, &handle->reductions.save_raw_tensor);
  take_if_set(&parameters.reductions.save_shape, &handle->reductions.save_shape);
  if (name == "include_regex") options.include_regex = std::move(parameters.include_regex);
  if (name == "save_all") options.save_all = parameters.save_all;
  if (name == "include_workers") options.include_workers = parameters.include_workers;
  if (name == "export_tensorboard") options.export_tensorboard = parameters.export_tensorboard;
  if (name == "tensorboard_dir") options.tensorboard_dir = parameters.tensorboard_dir.value_or("");
  if (name == "dry_run") options.dry_run = parameters.dry_run;
}

Status set_option(const std::string& name, const Json& value, tornasole_options* handle) {
  TORNASOLE_CHECK(check_name(name));
  for (const std::span<const Setter> setters :
       {std::span<const Setter>(kOwnSetters), std::span<const Setter>(kEngineSetters)}) {
    const Setter* setter = find_setter(setters, name);
    if (setter == nullptr) continue;
    if (Status set = setter->set(value, &handle->options); !set.ok()) {
      return Error{set.error().code, name + ": " + set.error().message, set.error().kind};
    }
    return {};
  }
  config::Problems problems;
  std::map<std::string, std::string> origins;
  const Json object(Json::Object{{name, value}}, 0);
  config::HookParameters parameters =
      config::read_hook_parameters(object, {.problems = &problems, .origins = &origins});
  if (!problems.errors().empty()) return problems.first_error();
  merge(std::move(parameters), name, handle);
  return {};
}

Status set_options(const char* text, tornasole_options* handle) {
  auto root = parse_json(text, {});
  if (!root.ok()) return invalid_error("the options are not JSON: {}", root.error().message);
  const Json::Object* members = root->as_object();
  if (members == nullptr) return invalid_error("the options are {}; allowed: an object", root->type_name());
  tornasole_options changed = *handle;
  for (const Json::Member& member : *members) {
    if (member.value.is_null()) {
      TORNASOLE_CHECK(check_name(member.key));
    } else {
      TORNASOLE_CHECK(set_option(member.key, member.value, &changed));
    }
  }
  *handle = std::move(changed);
  return {};
}

Status add_item(std::string_view name, const char* item, tornasole_options* handle) {
  HookOptions& options = handle->options;
  const auto add_to = [item](std::optional<std::vector<std::string>>* list) {
    if (!*list) list->emplace();
    (*list)->emplace_back(item);
    return Status();
  };
  if (name == "include_regex") {
    options.include_regex.emplace_back(item);
    return {};
  }
  if (name == "include_collections") {
    options.include_collections.emplace_back(item);
    return {};
  }
  if (name == "derived") return add_to(&options.derived);
  if (name == "rules") return add_to(&options.rules);
  if (name == "when_nan") return add_to(&handle->schedule.every_mode.when_nan);
  if (name == "train.when_nan") return add_to(&handle->schedule.by_mode[mode_index(Mode::kTrain)].when_nan);
  if (name == "eval.when_nan") return add_to(&handle->schedule.by_mode[mode_index(Mode::kEval)].when_nan);
  if (name == "predict.when_nan") return add_to(&handle->schedule.by_mode[mode_index(Mode::kPredict)].when_nan);
  if (name == "global.when_nan") return add_to(&handle->schedule.by_mode[mode_index(Mode::kGlobal)].when_nan);
  TORNASOLE_CHECK(check_name(name));
  return invalid_error(
      "'{}' is no list of texts; allowed: include_regex, include_collections, when_nan, derived, rules", name);
}

bool is_empty(const SaveConfigMode& fields) { return fields == SaveConfigMode{}; }

}  // namespace

SaveConfig to_save_config(const config::ScheduleFields& fields) {
  const SaveConfigMode& every = fields.every_mode;
  SaveConfig config{.save_interval = every.save_interval,
                    .start_step = every.start_step,
                    .end_step = every.end_step,
                    .save_steps = every.save_steps,
                    .when_nan = every.when_nan};
  for (const Mode mode : kAllModes) {
    const SaveConfigMode& own = fields.by_mode[mode_index(mode)];
    if (is_empty(own)) continue;
    SaveConfigMode whole = every;
    merge(own, &whole);
    config.modes[mode] = std::move(whole);
  }
  return config;
}

HookOptions resolve(const tornasole_options& handle) {
  HookOptions options = handle.options;
  options.save_config = to_save_config(handle.schedule);
  if (auto spec = handle.reductions.spec()) options.reduction_config = to_reduction_config(*spec);
  return options;
}

}  // namespace tornasole::capture

using tornasole::Status;
using tornasole::capture::answer;
using tornasole::capture::not_null;

tornasole_options_t* tornasole_options_new(void) {
  return tornasole::capture::answer_or<tornasole_options_t*>(
      nullptr, [] { return tornasole::Result<tornasole_options_t*>(new tornasole_options()); });
}

void tornasole_options_free(tornasole_options_t* options) { delete options; }

tornasole_code_t tornasole_options_set(tornasole_options_t* options, const char* name, const char* value) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_options_set", {{"options", options}, {"name", name}, {"value", value}}));
    return tornasole::capture::set_option(name, tornasole::Json(std::string(value), 0), options);
  });
}

tornasole_code_t tornasole_options_add(tornasole_options_t* options, const char* name, const char* item) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_options_add", {{"options", options}, {"name", name}, {"item", item}}));
    return tornasole::capture::add_item(name, item, options);
  });
}

tornasole_code_t tornasole_options_set_json(tornasole_options_t* options, const char* json) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_options_set_json", {{"options", options}, {"json", json}}));
    return tornasole::capture::set_options(json, options);
  });
}

tornasole_code_t tornasole_options_set_log(tornasole_options_t* options, tornasole_log_fn log, void* user) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_options_set_log", {{"options", options}}));
    options->options.log = nullptr;
    if (log == nullptr) return {};
    options->options.log = [log, user](tornasole::LogLevel level, std::string_view message) {
      log(static_cast<tornasole_log_level_t>(level), std::string(message).c_str(), user);
    };
    return {};
  });
}
