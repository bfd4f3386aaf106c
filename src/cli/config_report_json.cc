#include "base/json.h"
#include "cli/config_report.h"

namespace tornasole::cli {
namespace {

void write_steps(JsonWriter& json, const ReportedSteps& steps, const ConfigReport& report) {
  json.begin_object();
  json.key("mode").value(steps.mode ? mode_name(*steps.mode) : "every mode");
  json.key("first").begin_array();
  for (const std::int64_t step : steps.first) json.value(step);
  json.end_array();
  json.key("has_more").value(steps.has_more);
  if (report.step_limit) json.key("count").value(steps.count);
  json.key("rule").value(steps.rule);
  json.end_object();
}

void write_collection(JsonWriter& json, const ReportedCollection& collection, const ConfigReport& report) {
  json.begin_object();
  json.key("name").value(collection.name);
  json.key("patterns").begin_array();
  for (const std::string& pattern : collection.patterns) json.value(pattern);
  json.end_array();
  json.key("form").value(collection.form);
  json.key("save_histogram").value(collection.has_histogram);
  json.key("steps").begin_array();
  for (const ReportedSteps& steps : collection.steps) write_steps(json, steps, report);
  json.end_array();
  json.end_object();
}

void write_error(JsonWriter& json, const config::Problem& problem) {
  json.begin_object();
  json.key("file").value(problem.place.file);
  json.key("line");
  if (problem.place.line > 0) {
    json.value(problem.place.line);
  } else {
    json.null();
  }
  json.key("key").value(problem.place.key);
  json.key("message").value(problem.error.message);
  json.end_object();
}

}  // namespace

std::string to_json(const ConfigReport& report) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object();
  json.key("file").value(report.file);
  json.key("framework").value(config::framework_name(report.framework));
  json.key("sound").value(report.errors.empty());
  json.key("options").begin_object();
  for (const ReportedOption& option : report.options) {
    json.key(option.name).begin_object();
    json.key("value").value(option.value).key("from").value(option.origin);
    json.end_object();
  }
  json.end_object();
  json.key("collections").begin_array();
  for (const ReportedCollection& collection : report.collections) write_collection(json, collection, report);
  json.end_array();
  json.key("warnings").begin_array();
  for (const std::string& warning : report.warnings) json.value(warning);
  json.end_array();
  json.key("errors").begin_array();
  for (const config::Problem& problem : report.errors) write_error(json, problem);
  json.end_array();
  json.end_object();
  return text + "\n";
}

}  // namespace tornasole::cli
