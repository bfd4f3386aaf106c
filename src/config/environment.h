#pragma once

// The environment variables, read in one place. TORNASOLE_<X> wins over SMDEBUG_<X>.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tornasole::config {

class Environment {
 public:
  // A copy of the process's variables, and its real files.
  static Environment from_process();
  // For tests: exactly these variables; `files` answers for SageMaker's configuration files.
  explicit Environment(std::map<std::string, std::string> variables) : variables_(std::move(variables)) {}

  std::optional<std::string> get(std::string_view name) const;
  // SMDEBUG_<suffix> or TORNASOLE_<suffix>, the latter first.
  std::optional<std::string> get_twin(std::string_view suffix) const;
  // The directory `~` or `~user` stands for.
  std::optional<std::string> home(std::string_view user) const;

 private:
  std::map<std::string, std::string> variables_;
};

}  // namespace tornasole::config
