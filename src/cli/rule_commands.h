#pragma once

// The commands that run rules over a run, besides `check`; as those of commands.h.

namespace CLI {
class App;
}

namespace tornasole::cli {

void add_watch_command(CLI::App& app, int* exit_code);
void add_rule_command(CLI::App& app, int* exit_code);
void add_learn_command(CLI::App& app, int* exit_code);

}  // namespace tornasole::cli
