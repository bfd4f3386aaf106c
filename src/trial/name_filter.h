#pragma once

// NameFilter: which tensor names a query asks for, by patterns or by a collection.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pattern/pattern.h"
#include "tornasole/trial.h"

namespace tornasole::trial {

class NameFilter {
 public:
  // Names in which any of the patterns is found. kInvalid for one that Python would refuse.
  static Result<NameFilter> by_patterns(const std::vector<std::string>& patterns);
  // Names listed in the collection, and those found by its include but not by its exclude patterns.
  static Result<NameFilter> by_collection(const TrialCollection& collection);

  // Not from several threads at once: it remembers the patterns that gave up.
  bool contains(std::string_view name);
  // One line for each pattern that gave up on a name, in the order they did.
  const std::vector<std::string>& limit_reports() const noexcept { return limit_reports_; }

 private:
  struct UsedPattern {
    pattern::Pattern pattern;
    int given_up = 0;  // matches
  };
  static Result<std::vector<UsedPattern>> compile_all(const std::vector<std::string>& texts);
  bool is_found(std::vector<UsedPattern>* patterns, std::string_view name);

  std::set<std::string, std::less<>> listed_;
  std::vector<UsedPattern> include_;
  std::vector<UsedPattern> exclude_;
  std::vector<std::string> limit_reports_;
};

}  // namespace tornasole::trial
