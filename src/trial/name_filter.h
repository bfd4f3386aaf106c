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

  bool contains(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> listed_;
  std::vector<pattern::Pattern> include_;
  std::vector<pattern::Pattern> exclude_;
};

}  // namespace tornasole::trial
