#include "config/file_parameters.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/errors.h"
#include "config/engine_options.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

constexpr std::array<std::string_view, 4> kModePrefixes = {"train.", "eval.", "predict.", "global."};  // by mode_index
constexpr std::array<std::string_view, 5> kScheduleKeys = {"save_interval", "start_step", "end_step", "save_steps",
                                                           "when_nan"};
constexpr std::array<std::string_view, 3> kReductionKeys = {"reductions", "save_raw_tensor", "save_shape"};
constexpr std::array<std::string_view, 6> kHookKeys = {"include_regex",      "save_all",        "include_workers",
                                                       "export_tensorboard", "tensorboard_dir", "dry_run"};
constexpr std::array<std::string_view, 2> kCollectionKeys = {"include_regex", "save_histogram"};
constexpr std::array<std::string_view, 6> kFileKeys = {
    "LocalPath", "S3OutputPath", "S3Path", "HookParameters", "CollectionConfigurations", "CollectionName"};

template <std::size_t N>
std::vector<std::string> keys_with_schedule(const std::array<std::string_view, N>& own) {
  std::vector<std::string> keys(own.begin(), own.end());
  keys.insert(keys.end(), kReductionKeys.begin(), kReductionKeys.end());
  keys.insert(keys.end(), kScheduleKeys.begin(), kScheduleKeys.end());
  for (const std::string_view prefix : kModePrefixes) {
    for (const std::string_view key : kScheduleKeys) keys.push_back(std::string(prefix) + std::string(key));
  }
  return keys;
}

const std::vector<std::string>& hook_parameter_keys() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys = keys_with_schedule(kHookKeys);
    keys.insert(keys.end(), engine_option_names().begin(), engine_option_names().end());
    return keys;
  }();
  return kKeys;
}

const std::vector<std::string>& collection_parameter_keys() {
  static const std::vector<std::string> kKeys = keys_with_schedule(kCollectionKeys);
  return kKeys;
}

bool contains(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Reads the values of one object; knows where they stand.
class ObjectReader {
 public:
  explicit ObjectReader(const Scope& scope) : scope_(scope) {}

  template <typename T, typename Target>
  bool take(const std::string& key, const Json& value, Result<T> result, Target* out) {
    const bool is_good = scope_.problems->take(std::move(result), scope_.place(key, value.line()), out);
    if (is_good) (*scope_.origins)[scope_.origin_prefix + key] = "line " + std::to_string(value.line());
    return is_good;
  }

  void read_patterns(const std::string& key, const Json& value, std::vector<std::string>* out) {
    std::vector<std::string> patterns;
    if (!take(key, value, read_texts(value), &patterns)) return;
    for (const std::string& pattern : patterns) {
      if (auto checked = check_pattern(pattern); !checked) {
        scope_.problems->add(scope_.place(key, value.line()), checked.error());
        return;
      }
    }
    *out = std::move(patterns);
  }

  // False if the key is no schedule key.
  bool read_schedule_key(const std::string& key, const Json& value, ScheduleFields* fields) {
    SaveConfigMode* target = &fields->every_mode;
    std::string_view name = key;
    for (std::size_t mode = 0; mode < kModePrefixes.size(); ++mode) {
      if (!name.starts_with(kModePrefixes[mode])) continue;
      name.remove_prefix(kModePrefixes[mode].size());
      target = &fields->by_mode[mode];
      break;
    }
    if (name == "save_interval") {
      take(key, value, read_integer(value, {.min = 1}), &target->save_interval);
    } else if (name == "start_step") {
      take(key, value, read_integer(value), &target->start_step);
    } else if (name == "end_step") {
      take(key, value, read_integer(value), &target->end_step);
    } else if (name == "save_steps") {
      take(key, value, read_integers(value), &target->save_steps);
    } else if (name == "when_nan") {
      target->when_nan.emplace();
      read_patterns(key, value, &*target->when_nan);
    } else {
      return false;
    }
    return true;
  }

  bool read_reduction_key(const std::string& key, const Json& value, ReductionFields* fields) {
    if (key == "reductions") {
      take(key, value, read_reductions(value), &fields->reductions);
    } else if (key == "save_raw_tensor") {
      take(key, value, read_bool(value), &fields->save_raw_tensor);
    } else if (key == "save_shape") {
      take(key, value, read_bool(value), &fields->save_shape);
    } else {
      return false;
    }
    return true;
  }

 private:
  const Scope& scope_;
};

// A key that is right in another object of the file is more likely misplaced than mistyped.
std::string advice(const std::string& key, const std::vector<std::string>& known_keys) {
  if (key == "include_collections") return "; list them in CollectionConfigurations";
  const bool is_file_key = std::find(kFileKeys.begin(), kFileKeys.end(), key) != kFileKeys.end();
  if (is_file_key)
    return key == "CollectionName" ? "; it belongs in CollectionConfigurations" : "; it belongs at the top";
  if (contains(hook_parameter_keys(), key)) return "; it belongs in HookParameters";
  if (contains(collection_parameter_keys(), key)) return "; it belongs in CollectionParameters";
  const std::string_view nearest = nearest_key(key, known_keys);
  return nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?";
}

}  // namespace

void for_each_member(const Json& value, const Scope& scope, const std::vector<std::string>& known_keys,
                     const std::function<void(const std::string& key, const Json& value)>& read) {
  const Json::Object* object = value.as_object();
  if (object == nullptr) {
    std::string key = scope.path;
    if (key.ends_with('.')) key.pop_back();
    scope.problems->add({scope.file, value.line(), key},
                        invalid_error("{} is not allowed; allowed: an object", value.to_message()));
    return;
  }
  std::map<std::string_view, const Json*> last;
  for (const Json::Member& member : *object) last[member.key] = &member.value;
  for (const Json::Member& member : *object) {
    if (last[member.key] != &member.value) {
      scope.problems->warn(scope.place(shown_key(member.key), member.value.line()),
                           "key given more than once; the last one counts");
      continue;
    }
    if (contains(known_keys, member.key)) {
      if (!member.value.is_null()) read(member.key, member.value);
    } else {
      // The nearest key is worked out only for a warning that will be kept.
      const bool is_kept = scope.problems->keeps_warnings();
      scope.problems->warn(scope.place(shown_key(member.key), member.value.line()),
                           "unknown key ignored" + (is_kept ? advice(member.key, known_keys) : ""));
    }
  }
}

HookParameters read_hook_parameters(const Json& value, const Scope& scope) {
  HookParameters parameters;
  ObjectReader reader(scope);
  for_each_member(value, scope, hook_parameter_keys(), [&](const std::string& key, const Json& member) {
    static constexpr std::array<std::string_view, 2> kWorkers = {"one", "all"};
    std::size_t workers = 0;
    if (reader.read_schedule_key(key, member, &parameters.schedule)) return;
    if (reader.read_reduction_key(key, member, &parameters.reductions)) return;
    if (key == "include_regex") {
      reader.read_patterns(key, member, &parameters.include_regex);
    } else if (key == "save_all") {
      reader.take(key, member, read_bool(member), &parameters.save_all);
    } else if (key == "include_workers") {
      if (!reader.take(key, member, read_choice(member, kWorkers), &workers)) return;
      parameters.include_workers = workers == 0 ? IncludeWorkers::kOne : IncludeWorkers::kAll;
    } else if (key == "export_tensorboard") {
      reader.take(key, member, read_bool(member), &parameters.export_tensorboard);
    } else if (key == "tensorboard_dir") {
      reader.take(key, member, read_text(member), &parameters.tensorboard_dir);
      parameters.tensorboard_line = member.line();
    } else if (key == "dry_run") {
      reader.take(key, member, read_bool(member), &parameters.dry_run);
    } else {
      parameters.engine_options.insert_or_assign(key, member);
    }
  });
  return parameters;
}

CollectionParameters read_collection_parameters(const Json& value, const Scope& scope) {
  CollectionParameters parameters;
  ObjectReader reader(scope);
  for_each_member(value, scope, collection_parameter_keys(), [&](const std::string& key, const Json& member) {
    if (reader.read_schedule_key(key, member, &parameters.schedule)) return;
    if (reader.read_reduction_key(key, member, &parameters.reductions)) return;
    if (key == "include_regex") {
      reader.read_patterns(key, member, &parameters.include_regex);
    } else {
      reader.take(key, member, read_bool(member), &parameters.save_histogram);
    }
  });
  return parameters;
}

}  // namespace tornasole::config
