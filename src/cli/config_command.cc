// tornasole config check [FILE]: what a configuration means, before a training depends on it.

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/config_report.h"
#include "cli/terminal.h"
#include "config/config.h"
#include "config/environment.h"

namespace tornasole::cli {
namespace {

constexpr std::int64_t kMaxSteps = 10'000'000;
constexpr std::size_t kMaxInput = (std::size_t{1} << 20) + 1;  // one byte more than a configuration may have

struct CheckArguments {
  std::string file;
  std::string framework = "pytorch";
  std::int64_t steps = 0;
  bool as_json = false;
};

Result<std::string> read_standard_input() {
  std::string text(kMaxInput, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), stdin));
  if (std::ferror(stdin) != 0) return io_error("standard input cannot be read");
  return text;
}

int check(const CheckArguments& arguments) {
  const auto environment = config::Environment::from_process();
  const std::string path = config::find_config_file(arguments.file, environment);
  const bool is_input = path == "-";
  const auto text = is_input ? read_standard_input() : config::read_config_file(path, environment);
  ReportRequest request{.file = is_input ? "standard input" : path,
                        .framework = config::parse_framework(arguments.framework).value_or(Framework::kPytorch)};
  if (arguments.steps > 0) request.step_limit = arguments.steps;
  ConfigReport report;
  if (text) {
    report = make_config_report(*text, request, environment);
  } else {
    report.file = request.file;
    report.framework = request.framework;
    report.errors.push_back({{request.file, 0, ""}, text.error()});
  }
  const bool is_sound = report.errors.empty();
  const int code = is_sound ? kSound : kBadUse;
  if (arguments.as_json) return answer(to_json(report), code);
  if (is_sound) return answer(to_text(report, Style::of(stdout)), code);
  print(stderr, errors_to_text(report, Style::of(stderr)));
  return code;
}

}  // namespace

void add_config_command(CLI::App& app, int* exit_code) {
  CLI::App* config = app.add_subcommand("config", "Configuration files of a hook");
  config->require_subcommand(1);
  CLI::App* command = config->add_subcommand(
      "check",
      "Read a configuration file and print what it means: every option with its value and where it came from, then "
      "every collection that is saved, with its patterns, its form and its steps. All errors are shown, each with "
      "file, "
      "line, key, value and what is allowed.");
  const auto arguments = std::make_shared<CheckArguments>();  // shared: the parser keeps the callback
  command->add_option("FILE", arguments->file,
                      "The JSON file; - is standard input. Without it, the file a hook would find: "
                      "TORNASOLE_CONFIG_FILE_PATH, SMDEBUG_CONFIG_FILE_PATH, or "
                      "/opt/ml/input/config/debughookconfig.json");
  command->add_option("--framework", arguments->framework, "The framework whose built-in collections apply")
      ->check(CLI::IsMember({"pytorch", "tensorflow", "mxnet", "xgboost", "cpp"}))
      ->capture_default_str();
  command->add_option("--steps", arguments->steps, "Steps of a mode the training will take: counts the saved ones")
      ->check(CLI::Range(std::int64_t{1}, kMaxSteps))
      ->type_name("N");
  command->add_flag("--json", arguments->as_json, "Print JSON on standard output, errors included");
  command->footer(
      "Example:\n"
      "  tornasole config check hook.json --framework pytorch --steps 10000\n"
      "\n"
      "Exit codes: 0 the file is sound, 2 it is not, cannot be read, or the command was used wrongly.");
  command->callback([arguments, exit_code] { *exit_code = check(*arguments); });
}

}  // namespace tornasole::cli
