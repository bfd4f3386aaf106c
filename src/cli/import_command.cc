// tornasole import DIR -o OUT --from NAME: files of other programs as a trial.

#include "cli/import_command.h"

#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "tools/import_tensorboard.h"

namespace tornasole::cli {
namespace {

struct ImportArguments {
  tools::ImportOptions options;
  std::string from = "tensorboard";
  bool as_json = false;
};

int import_values(const ImportArguments& arguments) {
  const auto report = tools::import_tensorboard(arguments.options);
  if (!report) return fail(report.error(), arguments.as_json);
  if (arguments.as_json) {
    std::string text;
    JsonWriter json(&text);
    json.begin_object().key("path").value(arguments.options.path).key("files").value(report->files);
    json.key("steps").value(report->steps).key("curves").value(report->curves);
    json.key("histograms").value(report->histograms).key("values").value(report->values);
    json.key("left_out").value(report->left_out).key("cut").value(report->cut).end_object();
    return answer(text + "\n", kSound);
  }
  if (report->left_out > 0) warn(counted(report->left_out, "value") + " of other kinds left out");
  if (report->cut > 0) warn(counted(report->cut, "file") + " cut in the middle of a record; read up to there");
  return answer(fmt::format("{}: {} with {} and {}, {} of {}\n", printable(arguments.options.path),
                            counted(report->steps, "step"), counted(report->curves, "curve"),
                            counted(report->histograms, "histogram"), counted(report->values, "value"),
                            counted(report->files, "file")),
                kSound);
}

}  // namespace

void add_import_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "import",
      "The curves and histograms of TensorBoard's files as a trial, so that rules, check and queries work on them. "
      "Sub-directories like train and validation become modes.");
  const auto arguments = std::make_shared<ImportArguments>();  // shared: the parser keeps the callback
  command->add_option("DIR", arguments->options.source, "The directory with the event files")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", arguments->options.path, "The directory of the trial")
      ->required()
      ->type_name("OUT");
  command->add_option("--from", arguments->from, "The form")
      ->check(CLI::IsMember({"tensorboard"}))
      ->capture_default_str();
  command->add_option("--run", arguments->options.run, "Of several runs below DIR, this one")->type_name("NAME");
  command->add_flag("--json", arguments->as_json, "Print JSON");
  command->footer(
      "Example:\n"
      "  tornasole import logs/fit -o runs/fit\n"
      "  tornasole check runs/fit\n"
      "\n"
      "Exit codes: 0; 1 a file is damaged or OUT cannot be written; 2 no such directory, or wrong use.");
  command->callback([arguments, exit_code] { *exit_code = import_values(*arguments); });
}

}  // namespace tornasole::cli
