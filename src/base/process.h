#pragma once

// Which process is this, and is that one still alive? A process id alone is not enough: ids are used again.

#include <cstdint>
#include <optional>
#include <string>

namespace tornasole {

// Enough to tell whether a process still lives.
struct ProcessIdentity {
  std::string host = {};
  std::int64_t pid = 0;
  std::int64_t start = 0;  // of the process, in clock ticks since boot (/proc/<pid>/stat, field 22)
  bool operator==(const ProcessIdentity&) const = default;
};

ProcessIdentity this_process();
// Nothing if it runs on another host. A zombie is dead; where /proc does not tell, a doubt counts as life.
std::optional<bool> is_process_alive(const ProcessIdentity& process);

}  // namespace tornasole
