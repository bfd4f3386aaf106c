#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"
#include "cli/config_report.h"

namespace tornasole::cli {
namespace {

std::string steps_text(const ReportedSteps& steps, const ConfigReport& report) {
  if (steps.first.empty()) return "none";
  std::string text = fmt::format("{}{}", fmt::join(steps.first, ", "), steps.has_more ? ", ..." : "");
  if (report.step_limit) text += fmt::format(" ({} of {})", steps.count, *report.step_limit);
  return text;
}

std::string collection_text(const ReportedCollection& collection, const ConfigReport& report, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  const bool shows_histogram = report.has_tensorboard && collection.has_histogram;
  std::string patterns = fmt::format("{}", fmt::join(collection.patterns, "   "));
  rows.push_back({"patterns", patterns.empty() ? "none: filled by the framework or the script" : patterns});
  rows.push_back({"form", collection.form + (shows_histogram ? "; histograms in TensorBoard" : "")});
  for (const ReportedSteps& steps : collection.steps) {
    const std::string label = steps.mode ? std::string(mode_name(*steps.mode)) : "every mode";
    rows.push_back({label, steps_text(steps, report), steps.rule});
  }
  return style.heading("collection " + printable(collection.name)) + "\n" + align(rows, "  ");
}

std::string warnings_text(const ConfigReport& report, const Style& style) {
  std::string text;
  for (const std::string& warning : report.warnings) text += style.warning("warning: ") + printable(warning) + "\n";
  return text;
}

}  // namespace

std::string to_text(const ConfigReport& report, const Style& style) {
  std::string text = style.heading(fmt::format("{}: sound, for {}", printable(report.file),
                                               config::framework_name(report.framework))) +
                     "\n\n";
  std::vector<std::vector<std::string>> rows = {{"option", "value", "from"}};
  for (const ReportedOption& option : report.options) {
    const std::string note = option.note.empty() ? "" : " (" + option.note + ")";
    rows.push_back({option.name, option.value + note, option.origin});
  }
  text += align(rows, "");
  for (const ReportedCollection& collection : report.collections) {
    text += "\n" + collection_text(collection, report, style);
  }
  if (!report.warnings.empty()) text += "\n" + warnings_text(report, style);
  return text;
}

std::string errors_to_text(const ConfigReport& report, const Style& style) {
  std::string text = warnings_text(report, style);
  for (const config::Problem& problem : report.errors) {
    text += style.error("error: ") + printable(problem.error.message) + "\n";
  }
  text += fmt::format("{} error{}\n", report.errors.size(), report.errors.size() == 1 ? "" : "s");
  return text;
}

}  // namespace tornasole::cli
