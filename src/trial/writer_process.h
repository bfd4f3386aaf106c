#pragma once

#include <functional>
#include <optional>

#include "format/run_files.h"

namespace tornasole::trial {

// Whether the process that wrote a health file is still alive; nothing if it runs on another host.
using ProcessProbe = std::function<std::optional<bool>(const format::ProcessIdentity& process)>;

// By the start time in /proc: process ids are used again.
std::optional<bool> probe_process(const format::ProcessIdentity& process);

}  // namespace tornasole::trial
