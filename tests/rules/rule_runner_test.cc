// The pass over a trial: what rules see, what is read for them, how runs end; parameters and reports.

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

// Records what it is shown.
class Witness final : public Rule {
 public:
  explicit Witness(std::vector<Need> needs) : needs_(std::move(needs)) {}
  std::vector<Need> needs() const override { return needs_; }
  void look_at(const StepView& step, Findings& findings) override {
    steps.push_back(step.global_step().number);
    names.clear();
    for (const StepTensor* tensor : step.tensors()) names.emplace_back(tensor->name);
    last.clear();
    for (const StepTensor* tensor : step.tensors()) last.push_back(*tensor);
    if (on_step) on_step(step, findings);
  }
  void look_at_pause(const Pause& pause, Findings& /*findings*/) override { pauses.push_back(pause); }
  void reset() override {}

  std::vector<std::int64_t> steps;
  std::vector<std::string> names;
  std::vector<StepTensor> last;
  std::vector<Pause> pauses;
  std::function<void(const StepView&, Findings&)> on_step;

 private:
  std::vector<Need> needs_;
};

struct Watched {
  Witness* witness = nullptr;
  RuleRunner runner;
};
Watched start(Trial* trial, Need need, RuleRunOptions options = {}) {
  auto rule = std::make_unique<Witness>(std::vector{std::move(need)});
  Witness* witness = rule.get();
  RuleRunner runner(trial, std::move(options));
  runner.add({.name = "Witness", .rule = std::move(rule)});
  return {witness, std::move(runner)};
}

TEST(RuleRunner, OneStepAtATime) {
  RuleWorld world;
  for (const std::int64_t step : {0, 1, 2, 5, 7}) world.save(step, {{"loss", scalar(1)}});
  const struct {
    const char* what;
    std::int64_t step;
    bool is_seen;
  } kCases[] = {
      {"the first that is asked for may be any", 1, true},
      {"one that was passed over does not come back", 0, false},
      {"the same again is not seen again", 1, false},
      {"steps between may be left out", 5, true},
      {"one that was never saved", 6, false},
      {"one that is not there yet", 9, false},
      {"the last", 7, true},
  };
  Trial trial = world.open();
  auto [witness, runner] = start(&trial, {.value = true});
  Steps seen;
  for (const auto& c : kCases) {
    const Result<bool> looked = runner.run_step({c.step});
    ASSERT_TRUE(looked.ok()) << c.what;
    EXPECT_EQ(*looked, c.is_seen) << c.what;
    if (c.is_seen) seen.push_back(c.step);
    EXPECT_EQ(witness->steps, seen) << c.what;
  }
  EXPECT_EQ(runner.outcome(0).steps_evaluated, 3);
}

TEST(RuleRunner, TheEndStepMayLieBeforeTheLastKnown) {
  RuleWorld world;
  for (const std::int64_t step : {0, 1, 2, 3}) world.save(step, {{"loss", scalar(1)}});
  Trial trial = world.open();
  auto [witness, runner] = start(&trial, {.value = true}, {.end_step = 2});
  EXPECT_TRUE(runner.run().ok());
  EXPECT_EQ(witness->steps, (Steps{0, 1}));
  EXPECT_EQ(runner.ended_because(), "end_step");
  ASSERT_TRUE(runner.run_step({2}).ok());
  EXPECT_EQ(witness->steps, (Steps{0, 1, 2}));
}

TEST(RuleRunner, AFollowedRunEndsWhenTheCallerSaysSo) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  int looks = 0;
  const RuleOutcome outcome = world.run("LossSpike", {}, {.follow = true, .on_pause = [&] { return ++looks < 3; }});
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(outcome.steps_evaluated, 1);
}

TEST(RuleRunner, ARuleSeesTheTensorsThatMatchItsNeeds) {
  struct Case {
    const char* what;
    Need need;
    std::vector<std::string> names;
  };
  const Case cases[] = {
      {"everything but derived statistics", {.value = true}, {"loss", "fc.weight", "fc.bias"}},
      {"a collection", {.collections = {"weights"}, .value = true}, {"fc.weight"}},
      {"a collection and a pattern",
       {.collections = {"weights"}, .regex = {"^lo"}, .value = true},
       {"loss", "fc.weight"}},
      {"by name", {.names = {"fc.bias", "never saved"}, .value = true}, {"fc.bias"}},
      {"without what is excluded", {.exclude_regex = {"weight", "bias"}, .value = true}, {"loss"}},
      {"those the rule chooses",
       {.choose = [](std::string_view name) { return name.ends_with("s"); }, .value = true},
       {"loss", "fc.bias"}},
      {"a statistic by its own name", {.regex = {"^derived/hash"}, .value = true}, {"derived/hash/fc.weight"}},
  };
  RuleWorld world;
  world.save(4, {{"loss", scalar(1)},
                 {"fc.weight", floats({1, 2})},
                 {"fc.bias", floats({3})},
                 {"derived/hash/fc.weight", tools::tensor_of<std::int64_t>({7})}});
  for (const Case& c : cases) {
    Trial trial = world.open();
    Watched run = start(&trial, c.need);
    ASSERT_TRUE(run.runner.run().ok()) << c.what;
    EXPECT_EQ(run.witness->names, c.names) << c.what;
  }
}

TEST(RuleRunner, StoredReductionsSpareTheValue) {
  RuleWorld world;
  world.save(0, {{"w", floats({1, -2})}, {reduced("mean", "w"), scalar(100)}});
  Trial trial = world.open();
  Watched stored = start(&trial, {.stats = {Stat::kMean}});
  ASSERT_TRUE(stored.runner.run().ok());
  EXPECT_EQ(stored.witness->last[0].stats[Stat::kMean], 100);  // as stored: nobody looked at the value
  EXPECT_FALSE(stored.witness->last[0].shape.has_value());

  Watched both = start(&trial, {.stats = {Stat::kMean, Stat::kMax}});
  ASSERT_TRUE(both.runner.run().ok());
  EXPECT_EQ(both.witness->last[0].stats[Stat::kMean], -0.5);
  EXPECT_EQ(both.witness->last[0].stats[Stat::kMax], 1);
  EXPECT_EQ(both.witness->last[0].value, nullptr);

  Watched value = start(&trial, {.value = true});
  ASSERT_TRUE(value.runner.run().ok());
  ASSERT_NE(value.witness->last[0].value, nullptr);
  EXPECT_EQ(value.witness->last[0].value->shape(), Shape{2});
}

TEST(RuleRunner, DerivedStatisticsAreTakenAsStoredElseComputed) {
  RuleWorld world;
  world.save(0, {{"a", floats({0, 2, 0})},
                 {"b", floats({5})},
                 {"derived/counts/a", tools::tensor_of<std::int64_t>({99, 0, 0, 0, 0, -1})}});
  Trial trial = world.open();
  Watched run = start(&trial, {.regex = {"^[ab]$"}, .derived = {"counts"}});
  ASSERT_TRUE(run.runner.run().ok());
  ASSERT_EQ(run.witness->last.size(), 2U);
  std::map<std::string, std::int64_t> counts;
  for (const StepTensor& tensor : run.witness->last) {
    const Tensor* statistic = tensor.derived_statistic("counts");
    ASSERT_NE(statistic, nullptr) << tensor.name;
    counts[std::string(tensor.name)] = *reinterpret_cast<const std::int64_t*>(statistic->bytes().data());
  }
  EXPECT_EQ(counts, (std::map<std::string, std::int64_t>{{"a", 99}, {"b", 1}}));
}

TEST(RuleRunner, StepsAreBoundedAndSeenOnce) {
  RuleWorld world;
  world.save_series("loss", {1, 2, 3, 4, 5, 6});
  Trial trial = world.open();
  Watched run = start(&trial, {.value = true}, {.first_step = 1, .end_step = 4});
  ASSERT_TRUE(run.runner.run().ok());
  EXPECT_EQ(run.witness->steps, (Steps{1, 2, 3}));
  ASSERT_TRUE(run.runner.run().ok());
  EXPECT_EQ(run.witness->steps, (Steps{1, 2, 3}));
}

TEST(RuleRunner, PartialStepsAreNotShown) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  world.made().step({.step = 1, .values = {{"loss", scalar(1)}}, .is_partial = true});
  world.save(2, {{"loss", scalar(1)}});
  Trial trial = world.open();
  Watched run = start(&trial, {.value = true});
  ASSERT_TRUE(run.runner.run().ok());
  EXPECT_EQ(run.witness->steps, (Steps{0, 2}));
}

TEST(RuleRunner, ADamagedValueIsShownWithItsError) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  world.made().flip(format::event_path(0, "worker_0"), 40);
  Trial trial = world.open();
  Watched run = start(&trial, {.stats = {Stat::kMean}});
  ASSERT_TRUE(run.runner.run().ok());
  ASSERT_EQ(run.witness->last.size(), 1U);
  EXPECT_TRUE(run.witness->last[0].error.has_value());
  EXPECT_FALSE(run.witness->last[0].scalar().has_value());
}

TEST(RuleRunner, ARunThatIsFollowedIsSeenStepByStepUntilItEnds) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  std::int64_t next = 1;
  Watched run = start(&trial, {.value = true},
                      {.follow = true,
                       .now_s = [&] { return world.clock().now_s(); },
                       .sleep =
                           [&](double seconds) {
                             world.clock().advance(seconds);
                             next < 4 ? world.save(next, {{"loss", scalar(1)}}) : world.end();
                             ++next;
                           }});
  ASSERT_TRUE(run.runner.run().ok());
  EXPECT_EQ(run.witness->steps, (Steps{0, 1, 2, 3}));
  EXPECT_EQ(run.runner.ended_because(), "the run ended");
  EXPECT_GE(run.witness->pauses.size(), 4U);
  EXPECT_TRUE(run.witness->pauses.back().has_ended);
}

TEST(RuleRunner, ASilentRunIsGivenUp) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  Watched run = start(&trial, {.value = true},
                      {.follow = true,
                       .timeout_s = 20,
                       .now_s = [&] { return world.clock().now_s(); },
                       .sleep = [&](double seconds) { world.clock().advance(seconds); }});
  ASSERT_TRUE(run.runner.run().ok());
  EXPECT_EQ(run.runner.ended_because(), "no sign of life for 20 s");
}

TEST(RuleRunner, EndsAtTheFirstConditionIfAsked) {
  RuleWorld world;
  world.save_series("loss", {1, NAN, NAN});
  std::vector<std::string> told;
  const RuleOutcome outcome = world.run(
      "ExplodingTensor", {}, {.stop_when_met = true, .on_met = [&](const RuleOutcome& rule, const Violation& v) {
                                told.push_back(rule.name + " " + v.message);
                              }});
  EXPECT_EQ(outcome.steps_met, Steps{1});
  EXPECT_EQ(told, std::vector<std::string>{"ExplodingTensor loss: 1 NaN, 0 +Inf, 0 -Inf; the first at element 0"});
}

TEST(RuleRunner, ANeedMayFallBackToEverything) {
  struct Case {
    const char* what;
    Need need;
    std::vector<std::string> names;
  };
  const Case cases[] = {
      {"something matches", {.collections = {"losses"}, .or_everything = true, .value = true}, {"loss"}},
      {"nothing matches", {.regex = {"^x"}, .or_everything = true, .value = true}, {"loss", "fc.weight"}},
      {"nothing matches, and that is that", {.regex = {"^x"}, .value = true}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"loss", scalar(1)}, {"fc.weight", scalar(2)}, {"derived/hash/loss", scalar(3)}});
    Trial trial = world.open();
    Watched run = start(&trial, c.need);
    ASSERT_TRUE(run.runner.run().ok());
    EXPECT_EQ(run.witness->names, c.names) << c.what;
  }
}

TEST(RuleRunner, ARuleThatCannotGoOnIsNotAskedAgain) {
  RuleWorld world;
  world.save_series("loss", {1, 2, 3});
  Trial trial = world.open();
  Watched run = start(&trial, {.value = true});
  run.witness->on_step = [](const StepView& step, Findings& findings) {
    if (step.global_step().number == 1) findings.fail({ErrorCode::kInvalid, "no use"});
  };
  auto other = std::make_unique<Witness>(std::vector{Need{.value = true}});
  const Witness* other_witness = other.get();
  run.runner.add({.name = "Other", .rule = std::move(other)});
  ASSERT_TRUE(run.runner.run().ok());
  EXPECT_EQ(run.witness->steps, (Steps{0, 1}));
  EXPECT_EQ(run.runner.outcome(0).error->message, "no use");
  EXPECT_TRUE(run.witness->pauses.empty());
  EXPECT_EQ(other_witness->steps, (Steps{0, 1, 2}));
  EXPECT_FALSE(run.runner.outcome(1).error.has_value());
}

// Asks for a pace.
class Patient final : public Rule {
 public:
  std::vector<Need> needs() const override { return {}; }
  void look_at(const StepView& /*step*/, Findings& /*findings*/) override {}
  Pace pace() const override { return {.poll_s = 0.25, .patience_s = 50}; }
  void reset() override {}
};

TEST(RuleRunner, ARuleMaySetThePace) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  const double start_s = world.clock().now_s();
  double longest_s = 0;
  RuleRunner runner(&trial, {.follow = true,
                             .timeout_s = 20,
                             .now_s = [&] { return world.clock().now_s(); },
                             .sleep =
                                 [&](double seconds) {
                                   longest_s = std::max(longest_s, seconds);
                                   world.clock().advance(seconds);
                                 }});
  runner.add({.name = "Patient", .rule = std::make_unique<Patient>()});
  ASSERT_TRUE(runner.run().ok());
  EXPECT_EQ(longest_s, 0.25);
  EXPECT_EQ(world.clock().now_s() - start_s, 50);
}

TEST(RuleArguments, BadOnesAreNamed) {
  struct Case {
    const char* what;
    std::map<std::string, std::string> given;
    const char* message;
  };
  const Case cases[] = {
      {"an unknown parameter",
       {{"treshold", "1"}},
       "rule VanishingGradient: no parameter \"treshold\"; it has: threshold, collection_names, tensor_regex"},
      {"a text for a number",
       {{"threshold", "small"}},
       "rule VanishingGradient: threshold is \"small\"; it must be a number"},
  };
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  for (const Case& c : cases) {
    const auto made = make_rule("VanishingGradient", c.given, {.base = &trial});
    ASSERT_FALSE(made.ok()) << c.what;
    EXPECT_EQ(made.error().message, c.message);
  }
  const auto unknown = make_rule("Vanish", {}, {.base = &trial});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
}

TEST(RuleReport, KeepsTheFirstAndTheLastViolations) {
  RuleReport report;
  for (int i = 0; i < 130; ++i) report.add({.global_step = {i}, .value = i == 0 ? NAN : 1.0});
  const std::vector<Violation> kept = report.violations();
  ASSERT_EQ(kept.size(), 100U);
  EXPECT_EQ(kept[49].global_step.number, 49);
  EXPECT_EQ(kept[50].global_step.number, 80);
  EXPECT_EQ(kept[99].global_step.number, 129);
  const auto json = parse_json(report.to_json());
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(*json->find("Violations")->as_int(), 130);
  const Json* details = json->find("Details");
  EXPECT_EQ(*details->find("violations")->as_array()->at(0).find("value")->as_string(), "nan");
  EXPECT_EQ(*details->find("first_step")->as_int(), 0);
  EXPECT_EQ(*details->find("last_step")->as_int(), 129);
}

}  // namespace
}  // namespace tornasole::rules
