#pragma once

// The commands of `tornasole`. Each adds itself to the parser and sets the exit code when it is the one that runs.

#include <CLI/CLI.hpp>

namespace tornasole::cli {

// The same for every command; what else there is stands in its --help.
enum ExitCode : int { kSound = 0, kFailed = 1, kBadUse = 2 };

// tornasole config check [FILE]
void add_config_command(CLI::App& app, int* exit_code);

}  // namespace tornasole::cli
