#include "cli/rule_listing.h"

#include <algorithm>
#include <vector>

#include "base/json.h"

namespace tornasole::cli {
namespace {

std::string_view type_name_of(ParameterType type) {
  switch (type) {
    case ParameterType::kText: return "text";
    case ParameterType::kList: return "list";
    case ParameterType::kNumber: return "number";
    case ParameterType::kNumbers: return "numbers";
    case ParameterType::kInteger: return "integer";
    case ParameterType::kFlag: return "True or False";
  }
  return "text";
}

// In the order in which they appear first.
std::vector<std::string_view> groups() {
  std::vector<std::string_view> names;
  for (const RuleType& type : builtin_rules()) {
    if (std::ranges::find(names, type.group) == names.end()) names.push_back(type.group);
  }
  return names;
}

void write_rule(JsonWriter& json, const RuleType& type) {
  json.begin_object().key("name").value(type.name).key("group").value(type.group).key("summary").value(type.summary);
  json.key("parameters").begin_array();
  for (const Parameter& parameter : type.parameters) {
    json.begin_object().key("name").value(parameter.name).key("type").value(type_name_of(parameter.type));
    json.key("default");
    if (parameter.default_text.empty()) {
      json.null();
    } else {
      json.value(parameter.default_text);
    }
    json.key("help").value(parameter.help).end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::string rules_text(const Terminal& terminal) {
  std::string text;
  for (const std::string_view group : groups()) {
    if (!text.empty()) text += "\n";
    text += terminal.style.heading(group) + "\n";
    std::vector<std::vector<std::string>> rows;
    for (const RuleType& type : builtin_rules()) {
      if (type.group == group) rows.push_back({std::string(type.name), std::string(type.summary)});
    }
    text += align(rows, "  ");
  }
  return text + "\nThe parameters of a rule: tornasole rule --list-rules --rule-name RULE\n";
}

std::string rule_text(const RuleType& type, const Terminal& terminal) {
  std::string text =
      terminal.style.heading(type.name) + " (" + std::string(type.group) + ")\n  " + std::string(type.summary) + "\n";
  if (type.parameters.empty()) return text + "\nIt has no parameters.\n";
  std::vector<std::vector<std::string>> rows = {{"parameter", "type", "default", "meaning"}};
  for (const Parameter& parameter : type.parameters) {
    rows.push_back({"--" + std::string(parameter.name), std::string(type_name_of(parameter.type)),
                    parameter.default_text.empty() ? "-" : std::string(parameter.default_text),
                    std::string(parameter.help)});
  }
  return text + "\n" + align(rows, "  ");
}

std::string rules_json(const RuleType* only) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("rules").begin_array();
  for (const RuleType& type : builtin_rules()) {
    if (only == nullptr || only->name == type.name) write_rule(json, type);
  }
  json.end_array().end_object();
  return text + "\n";
}

}  // namespace tornasole::cli
