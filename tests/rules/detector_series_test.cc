// LossSpike, GradNormSpike, LossDivergence, OscillatingLoss, Plateau, SuspiciousValidation, InitialLoss.

#include <cmath>

#include "base/json.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

// The pattern again and again, so many values in all.
std::vector<float> repeated(const std::vector<float>& pattern, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(pattern[i % pattern.size()]);
  return values;
}
std::vector<float> then(std::vector<float> values, const std::vector<float>& rest) {
  values.insert(values.end(), rest.begin(), rest.end());
  return values;
}
const std::vector<float> kCalm = {0.98F, 0.99F, 1.00F, 1.01F, 1.02F};

struct SeriesCase {
  const char* what;
  std::vector<float> values;
  Parameters parameters;
  Steps met;
};
void expect_met(const char* rule, std::span<const SeriesCase> cases) {
  for (const SeriesCase& c : cases) {
    RuleWorld world;
    world.save_series("loss", c.values);
    EXPECT_EQ(world.met(rule, c.parameters), c.met) << c.what;
  }
}

TEST(LossSpike, WorkedCases) {
  const Parameters few = {{"min_points", "4"}, {"window", "4"}};
  const auto with = [&](Parameters more) {
    more.insert(few.begin(), few.end());
    return more;
  };
  const SeriesCase cases[] = {
      {"64 calm values, then 1.2", then(repeated(kCalm, 64), {1.2F}), {}, {64}},
      {"then 1.05, below the limit of 1.085", then(repeated(kCalm, 64), {1.05F}), {}, {}},
      {"63 values are too few to judge", then(repeated(kCalm, 63), {1.2F}), {}, {}},
      {"only upwards", then(repeated(kCalm, 64), {0.1F}), {}, {}},
      {"a flat series has the floor as its deviation", {1, 1, 1, 1, 1.0059F, 1}, few, {}},
      {"a flat series, above the floor", {1, 1, 1, 1, 1.0061F, 1}, few, {4}},
      {"a spike belongs to the window after it", {1, 1, 1, 1, 2, 2}, few, {4}},
      {"values that are not finite are no values", {1, 1, NAN, 1, INFINITY, 1, 2}, few, {6}},
      {"robust deviations", {1, 2, 3, 100, 9}, with({{"method", "mad"}, {"sigma", "2"}}), {4}},
      {"robust deviations, below", {1, 2, 3, 100, 5}, with({{"method", "mad"}, {"sigma", "2"}}), {}},
      {"ten times the first hundred", then(repeated({1, -2}, 100), {20, 19.5F, 21}), {{"method", "max"}}, {100, 102}},
      {"not before there are a hundred", then(repeated({1, -2}, 99), {20}), {{"method", "max"}}, {}},
      {"a first hundred of zeros is no measure", then(repeated({0}, 100), {1}), {{"method", "max"}}, {}},
  };
  expect_met("LossSpike", cases);
}

TEST(LossSpike, KeepsAScoreAndTellsModesApart) {
  RuleWorld world;
  const Parameters few = {{"min_points", "2"}, {"window", "2"}};
  std::int64_t step = 0;
  for (const float loss : {1.0F, 1.0F, 5.0F, 5.0F}) {
    world.save(step, {{"loss", scalar(loss)}}, ModeStep{Mode::kTrain, step / 2});
    world.save(step + 1, {{"loss", scalar(1000)}}, ModeStep{Mode::kEval, step / 2});
    step += 2;
  }
  const RuleOutcome outcome = world.run("LossSpike", few);
  EXPECT_EQ(outcome.steps_met, Steps{4});
  const auto score = parse_json(outcome.report.details.at("spike_score"));
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(*score->find("loss")->as_double(), 25);
}

TEST(LossSpike, RefusesBadParameters) {
  for (const auto& [name, text] : Parameters{{"method", "ema"}, {"min_points", "200"}, {"window", "1"}}) {
    EXPECT_FALSE(make_rule("LossSpike", {{name, text}}, {}).ok()) << name;
  }
}

TEST(GradNormSpike, TakesAllGradientsOfAWorkerTogether) {
  const Parameters few = {{"min_points", "3"}, {"window", "3"}};
  RuleWorld world({}, {"a", "b"});
  for (std::int64_t step = 0; step < 4; ++step) {
    // 3 and 4 make 5; at the last step one of them is 30.
    world.save(step, {{"gradient/u", floats({step == 3 ? 30.0F : 3.0F})}, {reduced("l2", "gradient/v"), scalar(4)}}, {},
               "a");
    world.save(step, {{"gradient/u", floats({3, 4})}}, {}, "b");
  }
  const RuleOutcome outcome = world.run("GradNormSpike", few);
  EXPECT_EQ(outcome.steps_met, Steps{3});
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_NEAR(*outcome.report.violations()[0].value, std::hypot(30.0, 4.0), 1e-9);
  EXPECT_NEAR(*outcome.report.violations()[0].threshold, 5 + 6 * 0.005, 1e-9);
}

TEST(GradNormSpike, AGradientWithoutItsNormMakesNone) {
  RuleWorld world;
  world.save(0, {{reduced("max", "gradient/u"), scalar(4)}, {"gradient/v", floats({1})}});
  const RuleOutcome outcome = world.run("GradNormSpike");
  EXPECT_EQ(outcome.report.datapoints, 1);  // v alone: nothing of u was read
}

TEST(GradNormSpike, ExponentialMean) {
  // Two values 1 and 3 warm up: mean 2, variance 1; the limit is 2 + 2.5 * 1.
  struct Case {
    const char* what;
    float norm;
    bool is_met;
  };
  for (const Case& c : {Case{"below the limit", 4.4F, false}, Case{"above the limit", 4.6F, true}}) {
    RuleWorld world;
    for (const auto& [step, norm] : {std::pair(0, 1.0F), std::pair(1, 3.0F), std::pair(2, c.norm)}) {
      world.save(step, {{"gradient/w", floats({norm})}});
    }
    EXPECT_EQ(world.met("GradNormSpike", {{"method", "ema"}, {"warmup", "2"}}), c.is_met ? Steps{2} : Steps{})
        << c.what;
    EXPECT_TRUE(world.met("GradNormSpike", {{"method", "ema"}, {"warmup", "3"}}).empty()) << c.what;
  }
}

TEST(LossDivergence, WorkedCases) {
  const SeriesCase cases[] = {
      {"five times the best", {1, 1, 1, 1, 1, 6, 6, 1}, {}, {6, 7}},  // means 2, 3, 3
      {"twice is allowed", {1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, {}, {}},
      {"a falling loss", {5, 4, 3, 2, 1, 0.5F, 0.2F}, {}, {}},
      {"losses below zero have no multiples", {-2, -2, -2, -2, -2, -1, 1, 5, 9}, {}, {}},
      {"window and factor are parameters", {1, 3, 4}, {{"window", "1"}, {"factor", "3"}}, {2}},
      {"NaN is no loss", {1, 1, 1, NAN, 1, 1}, {{"window", "5"}}, {}},
  };
  expect_met("LossDivergence", cases);
}

TEST(OscillatingLoss, WorkedCases) {
  std::vector<float> line;
  for (int i = 0; i < 60; ++i) line.push_back(10.0F - 0.1F * static_cast<float>(i));
  const SeriesCase cases[] = {
      {"up and down", repeated({1.0F, 1.2F}, 50), {}, {49}},
      {"one value too few", repeated({1.0F, 1.2F}, 49), {}, {}},
      {"a falling line", line, {}, {}},
      {"small strides", repeated({1.0F, 1.02F}, 50), {}, {}},
      {"half of the pairs turn, which is not more than half", repeated({1, 2, 3, 2}, 50), {}, {}},
      {"equal neighbours are no turn", repeated({1, 1, 2, 2}, 50), {}, {49}},
      {"a constant", repeated({1}, 50), {}, {}},
      {"window, switch and amplitude are parameters",
       {1, 2, 3, 2, 1},
       {{"window", "5"}, {"switch", "0.3"}, {"amplitude", "0.5"}},
       {4}},
  };
  expect_met("OscillatingLoss", cases);
}

TEST(Plateau, WorkedCases) {
  const Parameters four = {{"window", "4"}};
  const SeriesCase cases[] = {
      {"no change at all", repeated({1}, 200), {}, {199}},
      {"one value too few", repeated({1}, 199), {}, {}},
      {"it still falls", {4, 3, 2, 1}, four, {}},
      {"an improvement equal to the least one", {4, 4, 3, 3}, {{"window", "4"}, {"min_improve", "0.25"}}, {}},
      {"an improvement below the least one", {4, 4, 3, 3}, {{"window", "4"}, {"min_improve", "0.26"}}, {3}},
      {"it rises", {1, 1, 2, 2}, four, {3}},
      {"a loss below the target may stay", {1, 1, 1, 1}, {{"window", "4"}, {"target", "1.5"}}, {}},
      {"a loss at the target may not", {1, 1, 1, 1}, {{"window", "4"}, {"target", "1"}}, {3}},
      {"zero all the time is no ratio", {0, 0, 0, 0}, four, {}},
  };
  expect_met("Plateau", cases);
}

// Accuracies: T in training, V in evaluation.
void save_accuracies(RuleWorld* world, const std::vector<std::pair<char, float>>& events) {
  std::int64_t step = 0;
  std::int64_t train = 0;
  std::int64_t eval = 0;
  for (const auto& [kind, accuracy] : events) {
    const ModeStep at = kind == 'T' ? ModeStep{Mode::kTrain, train++} : ModeStep{Mode::kEval, eval++};
    world->save(step++, {{"Accuracy", scalar(accuracy)}}, at);
  }
}

TEST(SuspiciousValidation, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<std::pair<char, float>> events;
    Parameters parameters;
    Steps met;
  };
  const std::vector<std::pair<char, float>> leak = {{'T', 0.5F}, {'V', 0.9F}, {'T', 0.5F}, {'V', 0.9F}, {'T', 0.5F},
                                                    {'V', 0.9F}, {'T', 0.5F}, {'V', 0.9F}, {'V', 0.9F}};
  const Case cases[] = {
      {"from the fourth evaluation on", leak, {}, {7, 8}},
      {"the number of evaluations is a parameter", leak, {{"skip_evals", "4"}}, {}},
      {"a gap equal to the limit", {{'T', 0.5F}, {'V', 0.75F}}, {{"skip_evals", "0"}, {"gap", "0.25"}}, {}},
      {"a gap above the limit", {{'T', 0.5F}, {'V', 0.75F}}, {{"skip_evals", "0"}, {"gap", "0.24"}}, {1}},
      {"too good, although training is as good", {{'T', 0.97F}, {'V', 0.97F}}, {{"skip_evals", "0"}}, {1}},
      {"good, but not too good", {{'T', 0.94F}, {'V', 0.94F}}, {{"skip_evals", "0"}}, {}},
      {"other tensors by a pattern", {{'T', 0.5F}, {'V', 0.9F}}, {{"skip_evals", "0"}, {"tensor_regex", "f1"}}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    save_accuracies(&world, c.events);
    EXPECT_EQ(world.met("SuspiciousValidation", c.parameters), c.met) << c.what;
  }
}

TEST(InitialLoss, WorkedCases) {
  const auto ten = static_cast<float>(std::log(10.0));
  struct Case {
    const char* what;
    Values values;
    Parameters parameters;
    bool is_met;
  };
  const Values labels = {{"labels", floats({0, 9, 3})}};
  const auto with_loss = [](Values values, float loss) {
    values.emplace_back("loss", scalar(loss));
    return values;
  };
  const Case cases[] = {
      {"the loss of ten classes, by labels", with_loss(labels, ten), {}, false},
      {"far above it", with_loss(labels, 1.6F * ten), {}, true},
      {"far below it", with_loss(labels, 0.4F * ten), {}, true},
      {"within half of it", with_loss(labels, 1.4F * ten), {}, false},
      {"the limit is a parameter", with_loss(labels, 1.4F * ten), {{"dev", "0.3"}}, true},
      {"by the scores, which have all classes",
       with_loss({{"labels", floats({0, 1})}, {"CrossEntropyLoss_input_0", filled(0, {2, 10})}}, ten),
       {},
       false},
      {"by a parameter", with_loss({}, ten), {{"classes", "10"}}, false},
      {"a parameter goes before labels", with_loss(labels, ten), {{"classes", "1000"}}, true},
      {"no way to tell the classes", with_loss({}, 100), {}, false},
      {"one class is none", with_loss({{"labels", floats({0, 0})}}, 100), {}, false},
      {"NaN", with_loss(labels, NAN), {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, c.values);
    EXPECT_EQ(world.met("InitialLoss", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(InitialLoss, OnlyTheFirstTrainingStepOfEachWorker) {
  RuleWorld world({}, {"a", "b"});
  world.save(0, {{"loss", scalar(100)}}, ModeStep{Mode::kEval, 0}, "a");
  world.save(0, {{"x", scalar(1)}}, ModeStep{Mode::kEval, 0}, "b");
  world.save(1, {{"loss", scalar(100)}}, ModeStep{Mode::kTrain, 0}, "a");
  world.save(1, {{"loss", scalar(0.69F)}}, ModeStep{Mode::kTrain, 0}, "b");
  world.save(2, {{"loss", scalar(100)}}, ModeStep{Mode::kTrain, 1}, "a");
  world.save(2, {{"loss", scalar(100)}}, ModeStep{Mode::kTrain, 1}, "b");
  const RuleOutcome outcome = world.run("InitialLoss", {{"classes", "2"}});
  EXPECT_EQ(outcome.steps_met, Steps{1});
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "a");
}

}  // namespace
}  // namespace tornasole::rules
