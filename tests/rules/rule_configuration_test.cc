#include "tornasole/rule_configuration.h"

#include <gtest/gtest.h>

namespace tornasole::rules {
namespace {

constexpr std::string_view kWhole = R"({
  "DebugRuleConfiguration": {
    "RuleConfigurationName": "vanishing",
    "RuleEvaluatorImage": "the service's",
    "RuleParameters": {
      "rule_to_invoke": "vanishing_gradient",
      "threshold": "1e-6",
      "other_trials": "runs/a, runs/b",
      "action_json": "[{\"name\": \"file\"}]"
    }
  },
  "CollectionConfigurations": [
    {"CollectionName": "gradients", "CollectionParameters": {"save_interval": 500}}
  ]
})";

std::string object(const std::string& parameters, const std::string& name = "") {
  return R"({"DebugRuleConfiguration": {)" + (name.empty() ? "" : R"("RuleConfigurationName": ")" + name + "\", ") +
         R"("RuleParameters": {)" + parameters + "}}}";
}

TEST(RuleConfiguration, EveryPartIsRead) {
  const auto rules = parse_rule_configurations(kWhole, "rules.json");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 1U);
  const RuleConfiguration& rule = rules->front();
  EXPECT_EQ(rule.name, "vanishing");
  EXPECT_EQ(rule.rule, "vanishing_gradient");
  EXPECT_EQ(rule.parameters, (std::map<std::string, std::string>{{"threshold", "1e-6"}}));
  EXPECT_EQ(rule.other_trials, (std::vector<std::string>{"runs/a", "runs/b"}));
  EXPECT_EQ(rule.actions, R"([{"name": "file"}])");
  ASSERT_EQ(rule.collections.size(), 1U);
  EXPECT_EQ(rule.collections[0].name, "gradients");
  EXPECT_EQ(rule.collections[0].parameters.at("save_interval"), "500");
}

TEST(RuleConfiguration, OneOrAListOrATableOfThem) {
  const std::string one = object(R"("rule_to_invoke": "ExplodingTensor")");
  const std::string other = object(R"("rule_to_invoke": "VanishingGradient",)", "v");  // a comma too many
  struct Case {
    const char* what;
    std::string text;
    std::vector<std::string> names;
  };
  const Case cases[] = {
      {"one", one, {"ExplodingTensor"}},
      {"a list", "[" + one + ", " + other + "]", {"ExplodingTensor", "v"}},
      {"a table", R"({"first": )" + one + R"(, "second": )" + other + "}", {"ExplodingTensor", "v"}},
  };
  for (const Case& c : cases) {
    const auto rules = parse_rule_configurations(c.text, "rules.json");
    ASSERT_TRUE(rules.ok()) << c.what << ": " << rules.error().message;
    std::vector<std::string> names;
    for (const RuleConfiguration& rule : *rules) names.push_back(rule.name);
    EXPECT_EQ(names, c.names) << c.what;
  }
}

TEST(RuleConfiguration, ValuesAreTheTextsTheyStandFor) {
  const auto rules = parse_rule_configurations(
      object(R"("rule_to_invoke": "ExplodingTensor", "only_nan": true, "tensor_regex": ["a$", "b"])"), "f");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  EXPECT_EQ(rules->front().parameters.at("only_nan"), "True");
  EXPECT_EQ(rules->front().parameters.at("tensor_regex"), "a$,b");
  const auto number =
      parse_rule_configurations(object(R"("rule_to_invoke": "VanishingGradient", "threshold": 1e-9)"), "f");
  ASSERT_TRUE(number.ok()) << number.error().message;
  EXPECT_EQ(std::stod(number->front().parameters.at("threshold")), 1e-9);
}

TEST(RuleConfiguration, AMistakeIsToldWithFilePlaceValueAndWhatIsAllowed) {
  struct Case {
    const char* what;
    std::string text;
    std::vector<const char*> told;
  };
  const Case cases[] = {
      {"no JSON", "{", {"rules.json: ", "line 1"}},
      {"a number", "5", {"rules.json:1: ", "it is 5; it must be an object"}},
      {"an empty list", "[]", {"there is no rule in it"}},
      {"an unknown key",
       R"({"DebugRuleConfigurations": {}})",
       {"DebugRuleConfigurations: there is no such key; allowed are DebugRuleConfiguration, CollectionConfigurations",
        "did you mean DebugRuleConfiguration?"}},
      {"no parameters", R"({"DebugRuleConfiguration": {}})", {"it has no RuleParameters"}},
      {"no rule", object(""), {"DebugRuleConfiguration.RuleParameters: it has no rule_to_invoke"}},
      {"an unknown rule",
       object(R"("rule_to_invoke": "Vanish")"),
       {"RuleParameters.rule_to_invoke: no rule \"Vanish\"; rules: VanishingGradient"}},
      {"an unknown parameter",
       object(R"("rule_to_invoke": "VanishingGradient", "treshold": "1")"),
       {"no parameter \"treshold\"; it has: threshold"}},
      {"a parameter of another type",
       object(R"("rule_to_invoke": "VanishingGradient", "threshold": "low")"),
       {"threshold is \"low\"; it must be a number"}},
      {"a parameter that is no value",
       object(R"("rule_to_invoke": "VanishingGradient", "threshold": {})"),
       {"RuleParameters.threshold: it is {...}; it must be a text, a number, true, false or a list"}},
      {"the second of a list",
       "[" + object(R"("rule_to_invoke": "ExplodingTensor")") + ",\n 7]",
       {"rules.json:2: [1]: it is 7; it must be an object"}},
      {"a name twice",
       "[" + object(R"("rule_to_invoke": "ExplodingTensor")", "a") + "," +
           object(R"("rule_to_invoke": "VanishingGradient")", "a") + "]",
       {"[1].DebugRuleConfiguration.RuleConfigurationName: \"a\" is the name of two rules"}},
      {"a name that is a path",
       object(R"("rule_to_invoke": "ExplodingTensor")", "../x"),
       {"it is \"../x\"; a name has"}},
      {"the name of the status file",
       object(R"("rule_to_invoke": "ExplodingTensor")", "status"),
       {"is not \"status\""}},
      {"collections that are no list",
       R"({"DebugRuleConfiguration": {"RuleParameters": {"rule_to_invoke": "ExplodingTensor"}},
           "CollectionConfigurations": {}})",
       {"rules.json:2: CollectionConfigurations: it is {...}; it must be a list"}},
      {"a collection without a name",
       R"({"DebugRuleConfiguration": {"RuleParameters": {"rule_to_invoke": "ExplodingTensor"}},
           "CollectionConfigurations": [{}]})",
       {"rules.json:2: CollectionConfigurations[0].CollectionName: it is missing; it must be a text"}},
      {"a collection whose name is a number",
       R"({"DebugRuleConfiguration": {"RuleParameters": {"rule_to_invoke": "ExplodingTensor"}},
           "CollectionConfigurations": [{"CollectionName": 7}]})",
       {"rules.json:2: CollectionConfigurations[0].CollectionName: it is 7; it must be a text that is not empty"}},
      {"actions that are no JSON",
       object(R"("rule_to_invoke": "ExplodingTensor", "action_json": "{")", "a"),
       {"rules.json:", "DebugRuleConfiguration.RuleParameters.action_json: actions must be JSON, and \"{\" is none"}},
  };
  for (const Case& c : cases) {
    const auto rules = parse_rule_configurations(c.text, "rules.json");
    ASSERT_FALSE(rules.ok()) << c.what;
    EXPECT_EQ(rules.error().code, ErrorCode::kInvalid) << c.what;
    for (const char* part : c.told) {
      EXPECT_NE(rules.error().message.find(part), std::string::npos) << c.what << ": " << rules.error().message;
    }
  }
}

}  // namespace
}  // namespace tornasole::rules
