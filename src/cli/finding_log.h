#pragma once

// FindingLog: what is new among the findings of one check after the other.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tornasole/check.h"

namespace tornasole::cli {

enum class FindingChange : std::uint8_t {
  kFound,      // it was not there before
  kWorse,      // its severity has risen
  kWithdrawn,  // it was there, and more steps speak against it
};

struct FindingNews {
  FindingChange change = FindingChange::kFound;
  Verdict verdict = {};
  std::string cause = {};  // the rule it is likely a symptom of, or empty
};

class FindingLog {
 public:
  // In the order of the report; what is withdrawn comes last.
  std::vector<FindingNews> update(const CheckReport& report);

 private:
  // Steps move on while a finding lasts: it is known by its rule, its mode and the tensor that tells most, and by its
  // place among those that have all these in common.
  using Key = std::tuple<std::string, Mode, std::string, int>;
  std::map<Key, FindingNews> known_;
};

}  // namespace tornasole::cli
