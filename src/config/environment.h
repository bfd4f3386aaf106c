#pragma once

// The environment of the process, read in one place: its variables, home directories, and the small configuration
// files that variables point to. TORNASOLE_<X> wins over SMDEBUG_<X>.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tornasole/result.h"

namespace tornasole::config {

class Environment {
 public:
  // A copy of the process's variables, and its real files.
  static Environment from_process();
  // Exactly these variables, and the real files.
  explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}
  // For tests: exactly these variables and exactly these files, whatever the machine has.
  Environment(std::map<std::string, std::string> variables, std::map<std::string, std::string> files)
      : variables_(std::move(variables)), files_(std::move(files)) {}

  std::optional<std::string> get(std::string_view name) const;
  // The same, but a variable that is set to nothing counts as not set.
  std::optional<std::string> get_nonempty(std::string_view name) const;
  // SMDEBUG_<suffix> or TORNASOLE_<suffix>, the latter first; blank ones count as not set.
  std::optional<std::string> get_twin(std::string_view suffix) const;
  // The directory `~` (no user) or `~user` stands for.
  std::optional<std::string> home(std::string_view user) const;
  // The bytes of a regular file of at most `max_bytes`. kNotFound if there is none at that path; kIo, with the path, if
  // it is a directory, a pipe, unreadable or too long. Never blocks on a pipe.
  Result<std::string> read_file(const std::string& path, std::size_t max_bytes) const;

 private:
  std::map<std::string, std::string> variables_;
  std::optional<std::map<std::string, std::string>> files_;  // unset: the real ones
};

}  // namespace tornasole::config
