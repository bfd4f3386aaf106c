#pragma once

namespace tornasole::config {

// What a program that this process starts gets as its environment: the process's own, as it is now. Implemented where
// the environment is read, in environment.cc.
char** process_environment() noexcept;

}  // namespace tornasole::config
