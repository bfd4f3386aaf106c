#pragma once

// What is at an s3:// address, for those who have to choose before a trial is opened.

#include <cstdint>
#include <string>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::tools {

struct RemotePlace {
  bool is_empty = true;
  bool is_trial = false;   // it has collections, index or events
  bool has_begun = false;  // a run left its name there
};
// One listing.
Result<RemotePlace> look_at_remote(const std::string& location);

// The trials up to three levels below; at most `limit`.
Result<std::vector<std::string>> remote_trials_below(const std::string& location, std::size_t limit);

struct RemoteUse {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};
Result<RemoteUse> remote_use(const std::string& location);

}  // namespace tornasole::tools
