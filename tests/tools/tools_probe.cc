// Runs one tool on a directory and prints what it says as JSON, for the tests in Python.
//
//   tools_probe dump DIR [MAX_ELEMENTS]
//   tools_probe verify DIR
//   tools_probe repair DIR [--dry-run]
//   tools_probe export DIR FORMAT OUT [--compress] [--overwrite] [--statistics] [--binary] [--regex PATTERN]

#include <cstdio>
#include <string>
#include <vector>

#include "base/json.h"
#include "tools/dump.h"
#include "tools/export_trial.h"
#include "tools/repair.h"
#include "tools/verify.h"

namespace tornasole::tools {
namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int run_dump(const std::vector<std::string>& arguments) {
  DumpOptions options;
  options.trial.path = arguments[1];
  if (arguments.size() > 2) options.max_elements = std::stoll(arguments[2]);
  const Status done = dump(options, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return Status();
  });
  return done.ok() ? 0 : fail(done.error());
}

void write_damage(JsonWriter& json, const char* key, const Findings<Damage>& findings) {
  json.key(key).begin_array();
  for (const Damage& damage : findings.listed) json.value(damage.path + ": " + damage.what);
  json.end_array();
}

void write_report(JsonWriter& json, const VerifyReport& report) {
  json.begin_object().key("steps").value(report.steps).key("values").value(report.values);
  json.key("unverified_values").value(report.unverified_values).key("sound").value(report.is_sound());
  json.key("temporary").value(report.temporary_files.count).key("debris").value(report.debris.count);
  json.key("partial").begin_array();
  for (const StepPart& part : report.partial.listed) json.value(part.global_step);
  json.end_array();
  write_damage(json, "damaged", report.damaged);
  write_damage(json, "missing", report.missing);
  json.key("attempts").begin_array();
  for (const VerifyReport& attempt : report.attempts) write_report(json, attempt);
  json.end_array().end_object();
}

int run_verify(const std::vector<std::string>& arguments) {
  const auto report = verify({.path = arguments[1]});
  if (!report.ok()) return fail(report.error());
  std::string text;
  JsonWriter json(&text);
  write_report(json, *report);
  std::puts(text.c_str());
  return report->is_sound() ? 0 : 3;
}

int run_repair(const std::vector<std::string>& arguments) {
  const bool dry_run = arguments.size() > 2 && arguments[2] == "--dry-run";
  const auto report = repair({.path = arguments[1], .dry_run = dry_run});
  if (!report.ok()) return fail(report.error());
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("steps").value(report->steps_published).key("values").value(report->values_published);
  json.key("actions").begin_array();
  for (const RepairAction& action : report->actions.listed) {
    json.value(std::string(repair_action_name(action.kind)) + " " + action.path);
  }
  json.end_array();
  write_damage(json, "problems", report->problems);
  json.end_object();
  std::puts(text.c_str());
  return 0;
}

int run_export(const std::vector<std::string>& arguments) {
  auto trial = Trial::open({.path = arguments[1], .timeout_s = 0, .end_delay_s = 0});
  if (!trial.ok()) return fail(trial.error());
  ExportOptions options{.format = parse_export_format(arguments[2]).value_or(ExportFormat::kParquet),
                        .path = arguments[3]};
  for (std::size_t i = 4; i < arguments.size(); ++i) {
    if (arguments[i] == "--compress") options.compress = true;
    if (arguments[i] == "--binary") options.arrow_binary = true;
    if (arguments[i] == "--overwrite") options.overwrite = true;
    if (arguments[i] == "--statistics") options.statistics = {Stat::kMin, Stat::kMax, Stat::kMean, Stat::kNan};
    if (arguments[i] == "--regex" && i + 1 < arguments.size()) options.regex.push_back(arguments[++i]);
  }
  const auto report = export_trial(*trial, options);
  if (!report.ok()) return fail(report.error());
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("files").value(report->files).key("values").value(report->values);
  json.key("reductions").value(report->reductions).key("widened").value(report->widened);
  json.key("not_exact").value(report->not_exact).key("bytes").value(static_cast<std::int64_t>(report->bytes));
  write_damage(json, "skipped", report->skipped);
  json.end_object();
  std::puts(text.c_str());
  return 0;
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() >= 2 && arguments[0] == "dump") return run_dump(arguments);
  if (arguments.size() >= 2 && arguments[0] == "verify") return run_verify(arguments);
  if (arguments.size() >= 2 && arguments[0] == "repair") return run_repair(arguments);
  if (arguments.size() >= 4 && arguments[0] == "export") return run_export(arguments);
  std::fputs("use: tools_probe dump|verify|repair|export DIR ...\n", stderr);
  return 2;
}

}  // namespace tornasole::tools

int main(int argc, char** argv) { return tornasole::tools::run({argv + 1, argv + argc}); }
