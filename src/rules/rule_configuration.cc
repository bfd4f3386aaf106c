#include "tornasole/rule_configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "config/problems.h"
#include "config/values.h"
#include "tornasole/rule.h"
#include "tornasole/rule_actions.h"

namespace tornasole {
namespace {

constexpr JsonLimits kLimits = {.max_bytes = std::size_t{1} << 20, .max_depth = 16};
constexpr std::string_view kInner = "DebugRuleConfiguration";
constexpr std::string_view kCollections = "CollectionConfigurations";
constexpr std::size_t kMaxNameBytes = 200;

using Keys = std::vector<std::string>;
const Keys& outer_keys() {
  static const Keys kKeys = {std::string(kInner), std::string(kCollections)};
  return kKeys;
}
// Those after the second are the service's alone.
const Keys& inner_keys() {
  static const Keys kKeys = {"RuleConfigurationName", "RuleParameters", "RuleEvaluatorImage", "InstanceType",
                             "VolumeSizeInGB",        "LocalPath",      "S3OutputPath"};
  return kKeys;
}
const Keys& collection_keys() {
  static const Keys kKeys = {"CollectionName", "CollectionParameters"};
  return kKeys;
}

// As a parameter is written on a command line.
Result<std::string> text_of(const Json& value) {
  if (const std::string* text = value.as_string()) return *text;
  if (const bool* truth = value.as_bool()) return std::string(*truth ? "True" : "False");
  if (value.as_int() != nullptr || value.as_double() != nullptr) return value.to_message();
  if (const Json::Array* list = value.as_array()) {
    std::string text;
    for (const Json& item : *list) {
      if (item.as_array() != nullptr)
        return invalid_error("it is {}; a list has texts and numbers", value.to_message());
      TORNASOLE_TRY(const std::string part, text_of(item));
      text += (text.empty() ? "" : ",") + part;
    }
    return text;
  }
  return invalid_error("it is {}; it must be a text, a number, true, false or a list of these", value.to_message());
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(printable(file)) {}

  Result<std::vector<RuleConfiguration>> read(const Json& root) {
    if (const Json::Array* list = root.as_array()) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        TORNASOLE_CHECK(read_one((*list)[i], fmt::format("[{}]", i)));
      }
    } else if (is_table(root)) {
      for (const Json::Member& member : *root.as_object()) TORNASOLE_CHECK(read_one(member.value, shown(member.key)));
    } else {
      TORNASOLE_CHECK(read_one(root, ""));
    }
    if (rules_.empty()) return at(root.line(), "", "there is no rule in it");
    return std::move(rules_);
  }

 private:
  static std::string shown(const std::string& key) { return config::shown_key(key); }
  static std::string below(const std::string& path, std::string_view key) {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
  std::string place_of(int line, const std::string& key) const { return config::Place{file_, line, key}.prefix(); }
  Error at(int line, const std::string& key, std::string_view message) const {
    return invalid_error("{}{}", place_of(line, key), message);
  }

  // Rules by name, as the service's own file has them.
  static bool is_table(const Json& root) {
    const Json::Object* object = root.as_object();
    return object != nullptr && !object->empty() && std::ranges::all_of(*object, [](const Json::Member& member) {
             return member.value.find(kInner) != nullptr;
           });
  }

  Result<const Json::Object*> object_of(const Json& value, const std::string& path, const Keys* keys) const {
    const Json::Object* object = value.as_object();
    if (object == nullptr) {
      return at(value.line(), path, fmt::format("it is {}; it must be an object", value.to_message()));
    }
    if (keys == nullptr) return object;
    for (const Json::Member& member : *object) {
      if (std::ranges::find(*keys, member.key) != keys->end()) continue;
      const std::string_view near = config::nearest_key(member.key, *keys);
      return at(member.value.line(), below(path, shown(member.key)),
                fmt::format("there is no such key; allowed are {}{}", fmt::join(*keys, ", "),
                            near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    return object;
  }

  Result<std::map<std::string, std::string>> texts_of(const Json& value, const std::string& path) const {
    TORNASOLE_TRY(const Json::Object* object, object_of(value, path, nullptr));
    std::map<std::string, std::string> texts;
    for (const Json::Member& member : *object) {
      auto text = text_of(member.value);
      if (!text) return at(member.value.line(), below(path, shown(member.key)), text.error().message);
      texts[member.key] = std::move(*text);
    }
    return texts;
  }

  Status read_one(const Json& value, const std::string& path) {
    TORNASOLE_CHECK(object_of(value, path, &outer_keys()));
    const Json* inner = value.find(kInner);
    if (inner == nullptr) return at(value.line(), path, fmt::format("it has no {}", kInner));
    RuleConfiguration rule;
    TORNASOLE_CHECK(read_rule(*inner, below(path, kInner), &rule));
    if (const Json* collections = value.find(kCollections)) {
      TORNASOLE_CHECK(read_collections(*collections, below(path, kCollections), &rule));
    }
    rules_.push_back(std::move(rule));
    return {};
  }

  Status read_rule(const Json& inner, const std::string& path, RuleConfiguration* rule) {
    TORNASOLE_CHECK(object_of(inner, path, &inner_keys()));
    rule->place = place_of(inner.line(), path);
    const std::string parameters_path = below(path, "RuleParameters");
    const Json* parameters = inner.find("RuleParameters");
    if (parameters == nullptr) return at(inner.line(), path, "it has no RuleParameters");
    TORNASOLE_TRY(rule->parameters, texts_of(*parameters, parameters_path));
    const auto take = [rule](const std::string& key) {
      const auto node = rule->parameters.extract(key);
      return node.empty() ? std::string() : node.mapped();
    };
    rule->rule = take("rule_to_invoke");
    const int line = parameters->line();
    if (rule->rule.empty()) return at(line, parameters_path, "it has no rule_to_invoke, the name of a rule");
    const auto type = find_rule(rule->rule);
    if (!type) return at(line, below(parameters_path, "rule_to_invoke"), type.error().message);
    rule->actions = take("action_json");
    if (const auto actions = RuleActions::parse(rule->actions, {}); !actions) {
      return at(line, below(parameters_path, "action_json"), actions.error().message);
    }
    if (std::ranges::find((*type)->parameters, "other_trials", &Parameter::name) == (*type)->parameters.end()) {
      rule->other_trials = config::split_list(take("other_trials"));
    }
    if (const auto made = RuleArguments::make((*type)->name, (*type)->parameters, rule->parameters); !made) {
      return at(line, parameters_path, made.error().message);
    }
    return read_name(inner, path, (*type)->name, rule);
  }

  Status read_name(const Json& inner, const std::string& path, std::string_view own_name, RuleConfiguration* rule) {
    const Json* name = inner.find("RuleConfigurationName");
    const std::string key = below(path, "RuleConfigurationName");
    if (name != nullptr && name->as_string() == nullptr) {
      return at(name->line(), key, fmt::format("it is {}; it must be a text", name->to_message()));
    }
    rule->name = name == nullptr ? std::string(own_name) : *name->as_string();
    const int line = name == nullptr ? inner.line() : name->line();
    if (const Status sound = check_report_name(rule->name); !sound) return at(line, key, sound.error().message);
    if (!names_.insert(rule->name).second) {
      return at(line, key, fmt::format("\"{}\" is the name of two rules; reports are told apart by it", rule->name));
    }
    return {};
  }

  Status read_collections(const Json& value, const std::string& path, RuleConfiguration* rule) {
    const Json::Array* list = value.as_array();
    if (list == nullptr) return at(value.line(), path, fmt::format("it is {}; it must be a list", value.to_message()));
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string own_path = fmt::format("{}[{}]", path, i);
      TORNASOLE_CHECK(object_of((*list)[i], own_path, &collection_keys()));
      const Json* name = (*list)[i].find("CollectionName");
      if (name == nullptr || name->as_string() == nullptr || name->as_string()->empty()) {
        return at((*list)[i].line(), below(own_path, "CollectionName"),
                  fmt::format("it is {}; it must be a text that is not empty",
                              name == nullptr ? "missing" : name->to_message()));
      }
      NeededCollection collection{.name = *name->as_string()};
      if (const Json* parameters = (*list)[i].find("CollectionParameters")) {
        TORNASOLE_TRY(collection.parameters, texts_of(*parameters, below(own_path, "CollectionParameters")));
      }
      rule->collections.push_back(std::move(collection));
    }
    return {};
  }

  std::string file_;
  std::set<std::string> names_;
  std::vector<RuleConfiguration> rules_;
};

}  // namespace

Result<std::vector<RuleConfiguration>> parse_rule_configurations(std::string_view text, std::string_view file) {
  std::vector<std::string> warnings;  // of commas, which change nothing
  const auto json = parse_lenient_json(text, kLimits, &warnings);
  if (!json) return invalid_error("{}: {}", printable(file), json.error().message);
  return Reader(file).read(*json);
}

Status check_report_name(std::string_view name) {
  const bool is_sound = !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' && name != "status" &&
                        std::ranges::all_of(name, [](char c) {
                          return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                 c == '.' || c == '_' || c == '-';
                        });
  if (is_sound) return {};
  return invalid_error(
      "it is \"{}\"; a name has 1 to {} letters, digits, \"_\", \"-\" and \".\" (not first), and is not \"status\"",
      printable(name.substr(0, kMaxNameBytes)), kMaxNameBytes);
}

}  // namespace tornasole
