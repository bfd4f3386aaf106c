#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::rules {

// Starts a program, found on the PATH unless its name has a slash, without a shell; gives it `input` and waits until it
// ends. What it prints is discarded. An error if it cannot be started, ends with another code than 0 or by a signal, or
// takes longer than timeout_s: then it is killed, with what it started in its process group.
Status run_program(const std::vector<std::string>& command, std::string_view input, double timeout_s);

}  // namespace tornasole::rules
