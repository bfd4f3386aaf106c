#pragma once

// The options of the engine itself (queue, durability, budgets, ...): one table, whatever the value came from. An
// argument wins over TORNASOLE_<NAME>, which wins over HookParameters of a file.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "config/config.h"
#include "config/environment.h"
#include "config/problems.h"

namespace tornasole::config {

// Their names, in the order they are documented.
const std::vector<std::string>& engine_option_names();

// Values of a file by option; `file` and `key_prefix` say where they stand.
struct FileOptions {
  std::string file = {};
  std::string key_prefix = {};
  std::map<std::string, Json, std::less<>> values = {};
};

// Every value that is given is checked, those that lose included. Needs config->location.
void apply_engine_options(const HookOptions& options, const Environment& environment, const FileOptions& file_options,
                          Config* config, Problems* problems);

}  // namespace tornasole::config
