#include "tornasole/rule_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/errors.h"
#include "base/utf8.h"
#include "config/environment.h"
#include "config/locations.h"
#include "rules/action.h"
#include "rules/violation_json.h"

namespace tornasole {
namespace {

struct ActionType {
  std::string_view name;
  std::string_view key;  // that it needs
  rules::MadeAction (*make)(const Json& value, const RuleActionOptions& options);
};
constexpr std::array kTypes = {
    ActionType{"stoptraining", "training_job_prefix", rules::make_stop_action},
    ActionType{"email", "endpoint", rules::make_email_action},
    ActionType{"sms", "endpoint", rules::make_sms_action},
    ActionType{"exec", "command", rules::make_exec_action},
    ActionType{"file", "path", rules::make_file_action},
    ActionType{"webhook", "url", rules::make_webhook_action},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string names_of_types() {
  std::string names;
  for (const ActionType& type : kTypes) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

std::string without_backslashes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '"') continue;
    out += text[i];
  }
  return out;
}

// Also with its quotes escaped, as it comes through some command lines and services.
Result<Json> parse_text(std::string_view text) {
  auto json = parse_json(text);
  if (json) return json;
  if (text.find("\\\"") != std::string_view::npos) {
    if (auto unescaped = parse_json(without_backslashes(text))) return unescaped;
  }
  return invalid_error("actions must be JSON, and \"{}\" is none: {}", printable(text.substr(0, 200)),
                       json.error().message);
}

// The member of an object, its key compared without case; the last one counts.
const Json* member_of(const Json::Object& object, std::string_view key) {
  const Json* found = nullptr;
  for (const Json::Member& member : object) {
    if (lower(member.key) == key) found = &member.value;
  }
  return found;
}

struct ReadAction {
  std::string_view name;
  std::unique_ptr<rules::Action> action;
};

Result<ReadAction> read_action(const Json& entry, const RuleActionOptions& options) {
  const Json::Object* object = entry.as_object();
  if (object == nullptr) return invalid_error("{} is no object", entry.to_message());
  const Json* name = member_of(*object, "name");
  if (name == nullptr || name->as_string() == nullptr) {
    return invalid_error("{} has no \"name\"; it is one of {}", entry.to_message(), names_of_types());
  }
  const auto* type = std::ranges::find(kTypes, lower(*name->as_string()), &ActionType::name);
  if (type == kTypes.end()) {
    return invalid_error("no action is called {}; there are {}", name->to_message(), names_of_types());
  }
  const Json* value = member_of(*object, type->key);
  if (value == nullptr) return invalid_error("{} needs \"{}\": {}", type->name, type->key, entry.to_message());
  TORNASOLE_TRY(std::unique_ptr<rules::Action> action, type->make(*value, options));
  return ReadAction{type->name, std::move(action)};
}

// Of the absolute path: "." has a name too.
std::string last_component(const std::string& path) {
  const auto absolute = config::absolute_location(config::expand_home(path, config::Environment::from_process()));
  return absolute ? absolute->substr(absolute->find_last_of('/') + 1) : std::string();
}

std::string event_json(std::string_view rule, const Violation& violation, const std::string& trial, double time_s) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("rule").value(rule).key("trial").value(trial).key("time").value(time_s);
  rules::write_violation_members(json, violation);
  json.end_object();
  return text;
}

}  // namespace

RuleActions::RuleActions(RuleActionOptions options) {
  if (options.trial_name.empty()) options.trial_name = last_component(options.trial_path);
  options_ = std::make_unique<const RuleActionOptions>(std::move(options));
}
RuleActions::RuleActions(RuleActions&&) noexcept = default;
RuleActions& RuleActions::operator=(RuleActions&&) noexcept = default;
RuleActions::~RuleActions() = default;

Result<RuleActions> RuleActions::parse(std::string_view text, RuleActionOptions options) {
  RuleActions actions(std::move(options));
  if (is_blank(text)) return actions;
  TORNASOLE_TRY(const Json json, parse_text(text));
  std::vector<const Json*> entries;
  if (json.as_object() != nullptr) {
    entries.push_back(&json);
  } else if (const Json::Array* list = json.as_array()) {
    for (const Json& entry : *list) entries.push_back(&entry);
  } else {
    actions.log(fmt::format("actions are an object or a list of objects, not {}; there are none", json.to_message()));
  }
  for (const Json* entry : entries) {
    auto read = read_action(*entry, *actions.options_);
    if (!read) {
      actions.log("an action is left out: " + read.error().message);
      continue;
    }
    const Json* repeat = member_of(*entry->as_object(), "repeat");
    const bool* is_repeated = repeat == nullptr ? nullptr : repeat->as_bool();
    if (repeat != nullptr && is_repeated == nullptr) {
      actions.log(fmt::format("action {}: \"repeat\" is true or false, not {}; it runs once", read->name,
                              repeat->to_message()));
    }
    actions.entries_.push_back({.name = std::string(read->name),
                                .action = std::move(read->action),
                                .is_repeated = is_repeated != nullptr && *is_repeated});
  }
  return actions;
}

void RuleActions::invoke(std::string_view rule, const Violation& newest) {
  const double time_s = system_clock().wall_seconds();
  const std::string json = event_json(rule, newest, options_->trial_path, time_s);
  for (Entry& entry : entries_) {
    if (entry.is_done && !entry.is_repeated) continue;
    entry.is_done = true;
    const Status ran = entry.action->run({.rule = rule, .violation = newest, .time_s = time_s, .json = json});
    if (ran) continue;
    ++undelivered_;
    log(fmt::format("rule {}: action {} failed: {}", rule, entry.name, ran.error().message));
  }
}

void RuleActions::log(const std::string& message) const {
  if (options_->log) options_->log(message);
}

}  // namespace tornasole
