#pragma once

// Completion scripts, made from the parser's own commands and options, so that they never fall behind it.

#include <CLI/CLI.hpp>
#include <string>

namespace tornasole::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };
std::string completion_script(const CLI::App& app, Shell shell);

}  // namespace tornasole::cli
