#pragma once

// Shared by the tests of this folder: an environment without anything, and a file read in it.

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "config/config.h"
#include "config/environment.h"
#include "support/tests_dir.h"

namespace tornasole::config {

using Variables = std::map<std::string, std::string>;

inline Environment bare(Variables variables = {}, std::map<std::string, std::string> files = {}) {
  return Environment(std::move(variables), std::move(files));
}
inline Result<Config> parse(const std::string& text, Framework framework = Framework::kPytorch,
                            const Environment& environment = bare()) {
  return parse_config(text, "run.json", {.framework = framework}, environment);
}
// A file with these HookParameters, given without braces.
inline std::string with_hook(const std::string& members) {
  return "{\"LocalPath\": \"/run\",\n\"HookParameters\": {" + members + "}}";
}
// A file with one collection `c` of these CollectionParameters.
inline std::string with_collection(const std::string& members) {
  return "{\"LocalPath\": \"/run\", \"CollectionConfigurations\": [\n{\"CollectionName\": \"c\", "
         "\"CollectionParameters\": {" +
         members + "}}]}";
}
inline std::string example(const std::string& name) {
  std::ifstream file(tests_dir() + "/config/examples/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tornasole::config
