#pragma once

// Problems: every error and warning met while a configuration is read, each with where it stands, so that all of them
// can be shown at once.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::config {

// Where a value stands. `file` is empty for arguments and for the environment.
struct Place {
  std::string file = {};
  int line = 0;          // 0: unknown
  std::string key = {};  // "HookParameters.save_interval"; empty for the file as a whole

  // "run.json:7: HookParameters.save_interval: ", ready to go before a message.
  std::string prefix() const;
};

// One error: `error.message` is complete, place included.
struct Problem {
  Place place;
  Error error;
};

class Problems {
 public:
  void add(const Place& place, const Error& error);
  void warn(const Place& place, std::string_view message);
  // Moves the value into `out` and returns true, or keeps the error and returns false.
  template <typename T, typename Target>
  bool take(Result<T> result, const Place& place, Target* out) {
    if (result.ok()) {
      *out = std::move(result).value();
      return true;
    }
    add(place, result.error());
    return false;
  }

  // False once warnings are no longer kept, so that a costly one need not be worked out.
  bool keeps_warnings() const noexcept { return warnings_.size() < kMaxWarnings; }

  const std::vector<Problem>& errors() const noexcept { return errors_; }
  // The first one, saying how many more there are. There must be one.
  Error first_error() const;
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  // A hostile file has a mistake per byte; nobody reads more than these.
  static constexpr std::size_t kMaxErrors = 1000;
  static constexpr std::size_t kMaxWarnings = 100;
  std::vector<Problem> errors_;
  std::vector<std::string> warnings_;
};

// The candidate nearest to a mistyped key; empty when none is near.
std::string_view nearest_key(std::string_view key, const std::vector<std::string>& candidates);

// A key of a file made fit for a message: control characters escaped, cut to a readable length.
std::string shown_key(std::string_view key);

}  // namespace tornasole::config
