#pragma once

// The form of --help: lines as wide as the terminal, allowed values with the option, one sentence for each command.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace tornasole::cli {

// False for a flag.
bool takes_value(const CLI::Option& option);
// The values an option allows, if they are a list; from its checks.
std::vector<std::string> choices_of(const CLI::Option& option);
std::shared_ptr<CLI::FormatterBase> make_help_formatter(std::size_t width);

}  // namespace tornasole::cli
