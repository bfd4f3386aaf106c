#pragma once

#include <CLI/CLI.hpp>

namespace tornasole::cli {

void add_import_command(CLI::App& app, int* exit_code);

}  // namespace tornasole::cli
