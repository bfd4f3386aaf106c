// tornasole completion SHELL: the script that lets a shell complete commands, options, directories and tensor names.

#include <memory>

#include "cli/command_output.h"
#include "cli/completion.h"

namespace tornasole::cli {

void add_completion_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "completion",
      "A completion script for a shell: commands, options and their values, directories, and the names of tensors.");
  const auto shell = std::make_shared<std::string>();  // shared: the parser keeps the callback
  command->add_option("SHELL", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Example:\n"
      "  source <(tornasole completion bash)\n"
      "\n"
      "Exit codes: 0; 2 wrong use.");
  command->callback([&app, shell, exit_code] {
    const Shell which = *shell == "bash" ? Shell::kBash : *shell == "zsh" ? Shell::kZsh : Shell::kFish;
    *exit_code = answer(completion_script(app, which));
  });
}

}  // namespace tornasole::cli
