#pragma once

// The commands of `tornasole`. Each adds itself to the parser and sets the exit code when it is the one that runs.

#include <CLI/CLI.hpp>

namespace tornasole::cli {

// The same for every command; what else there is stands in its --help.
enum ExitCode : int {
  kSound = 0,
  kFailed = 1,
  kDifferent = 1,  // of diff
  kBadUse = 2,
  kDamaged = 3,
  kFound = 10,
};

// One file each, in the order of --help.
void add_ls_command(CLI::App& app, int* exit_code);
void add_show_command(CLI::App& app, int* exit_code);
void add_stats_command(CLI::App& app, int* exit_code);
void add_plot_command(CLI::App& app, int* exit_code);
void add_tail_command(CLI::App& app, int* exit_code);
void add_check_command(CLI::App& app, int* exit_code);
void add_first_bad_command(CLI::App& app, int* exit_code);
void add_diff_command(CLI::App& app, int* exit_code);
void add_dump_command(CLI::App& app, int* exit_code);
void add_export_command(CLI::App& app, int* exit_code);
void add_verify_command(CLI::App& app, int* exit_code);
void add_repair_command(CLI::App& app, int* exit_code);
void add_upload_command(CLI::App& app, int* exit_code);
void add_config_command(CLI::App& app, int* exit_code);
void add_completion_command(CLI::App& app, int* exit_code);

}  // namespace tornasole::cli
