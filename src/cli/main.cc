#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/help_text.h"
#include "cli/import_command.h"
#include "cli/rule_commands.h"
#include "cli/terminal.h"

int main(int argc, char** argv) {
  using namespace tornasole::cli;
  int exit_code = kSound;
  // The parser and the standard library throw; this is where that ends.
  try {
    CLI::App app(
        "Shows every tensor that flows through a training run, stores the ones you ask for, and tells what "
        "went wrong.",
        "tornasole");
    app.formatter(make_help_formatter(Terminal::of(stdout).width));
    app.set_version_flag("--version", "tornasole " TORNASOLE_VERSION, "Print the version and exit");
    app.require_subcommand(1);
    app.footer(
        "Example:\n"
        "  tornasole ls runs\n"
        "  tornasole show runs/mnist loss\n"
        "  tornasole first-bad runs/mnist\n"
        "  tornasole rule runs/mnist VanishingGradient\n"
        "\n"
        "Exit codes: 0 sound, 1 something failed, 2 wrong use. Others are told by a command's own --help.\n"
        "Colours and progress are shown on a terminal only; NO_COLOR turns colours off.\n"
        "More on a command: tornasole COMMAND --help");
    for (const auto add :
         {add_ls_command, add_show_command, add_stats_command, add_plot_command, add_tail_command, add_watch_command,
          add_check_command, add_first_bad_command, add_rule_command, add_learn_command, add_diff_command,
          add_dump_command, add_export_command, add_import_command, add_verify_command, add_repair_command,
          add_upload_command, add_config_command, add_completion_command}) {
      add(app, &exit_code);
    }
    for (CLI::App* command : app.get_subcommands({})) command->group("Commands");
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app.exit(success);  // --help, --version
    } catch (const CLI::ParseError& error) {
      print(stderr, Style::of(stderr).error("error: ") + tornasole::printable(error.what()) +
                        "\nMore: tornasole --help, tornasole COMMAND --help\n");
      return kBadUse;
    }
  } catch (const std::exception& error) {
    print(stderr, "error: " + tornasole::printable(error.what()) + "\n");
    return kFailed;
  }
  return exit_code;
}
