#pragma once

// The objects of a configuration file, read key by key: HookParameters and CollectionParameters. What is wrong goes to
// Problems; unknown keys are warned of, with the key that was probably meant.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/config.h"
#include "config/problems.h"
#include "config/reductions.h"
#include "config/schedules.h"

namespace tornasole::config {

// Where in the file an object stands, and where findings go.
struct Scope {
  std::string file = {};
  std::string path = {};           // "HookParameters.", before every key; empty at the top
  std::string origin_prefix = {};  // "losses.", before the keys of `origins`
  Problems* problems = nullptr;
  std::map<std::string, std::string>* origins = nullptr;

  Place place(std::string_view key, int line) const { return {file, line, path + std::string(key)}; }
};

// Calls `read` with each known key and its value unless it is null; a repeated key once, with its last value. Other
// keys are warned of. Nothing is called when `value` is no object, which is an error.
void for_each_member(const Json& value, const Scope& scope, const std::vector<std::string>& known_keys,
                     const std::function<void(const std::string& key, const Json& value)>& read);

struct HookParameters {
  ScheduleFields schedule = {};
  ReductionFields reductions = {};
  std::vector<std::string> include_regex = {};
  bool save_all = false;
  IncludeWorkers include_workers = IncludeWorkers::kOne;
  bool export_tensorboard = false;
  std::optional<std::string> tensorboard_dir = {};
  int tensorboard_line = 0;
  bool dry_run = false;
  std::map<std::string, Json, std::less<>> engine_options = {};
};
HookParameters read_hook_parameters(const Json& value, const Scope& scope);

struct CollectionParameters {
  ScheduleFields schedule = {};
  ReductionFields reductions = {};
  std::vector<std::string> include_regex = {};
  std::optional<bool> save_histogram = {};
};
CollectionParameters read_collection_parameters(const Json& value, const Scope& scope);

}  // namespace tornasole::config
