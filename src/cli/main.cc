#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace tornasole::cli;
  int exit_code = kSound;
  // The parser and the standard library throw; this is where that ends.
  try {
    CLI::App app(
        "Shows every tensor that flows through a training run, stores the ones you ask for, and tells what "
        "went wrong.",
        "tornasole");
    app.set_version_flag("--version", "tornasole " TORNASOLE_VERSION, "Print the version and exit");
    app.require_subcommand(1);
    app.footer(
        "Usage in short:\n"
        "  tornasole config check [FILE] [--framework NAME] [--steps N] [--json]\n"
        "      What a configuration file means: every option and where its value came from, then what is\n"
        "      saved, in what form and at which steps. Shows every error with file, line and key.\n"
        "      tornasole config check hook.json --framework pytorch --steps 10000\n"
        "\n"
        "Exit codes: 0 sound, 1 something failed, 2 wrong use or a wrong configuration.\n"
        "More on a command: tornasole config check --help");
    add_config_command(app, &exit_code);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? kSound : kBadUse;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tornasole: %s\n", error.what());
    return kFailed;
  }
  return exit_code;
}
