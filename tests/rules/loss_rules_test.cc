// LossNotDecreasing, Overfit, Overtraining, StalledTrainingRule.

#include <cmath>

#include "format/model_file.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

struct Point {
  std::int64_t step;
  float loss;
};

TEST(LossNotDecreasing, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<Point> points;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"the loss of step 12 against that of step 0 has not fallen",
       {{0, 0.3F}, {4, 0.33F}, {8, 0.31F}, {12, 0.30F}, {16, 0.28F}},
       {},
       {12}},
      {"it rose by 6 percent", {{0, 1.0F}, {10, 1.06F}}, {}, {10}},
      {"it fell by 20 percent", {{0, 1.0F}, {5, 0.9F}, {10, 0.8F}}, {}, {}},
      {"it rose by 3 percent, which is allowed", {{0, 1.0F}, {10, 1.03F}}, {}, {}},
      {"a rise equal to the limit is allowed", {{0, 1.0F}, {10, 1.25F}}, {{"increase_threshold_percent", "25"}}, {}},
      {"a rise is judged by its own limit", {{0, 1.0F}, {10, 1.25F}}, {{"increase_threshold_percent", "24"}}, {10}},
      {"a fall equal to the least one is enough", {{0, 1.0F}, {10, 0.75F}}, {{"diff_percent", "25"}}, {}},
      {"a fall below the least one", {{0, 1.0F}, {10, 0.75F}}, {{"diff_percent", "26"}}, {10}},
      {"no fall is demanded", {{0, 1.0F}, {10, 1.0F}}, {{"diff_percent", "0"}}, {}},
      {"one step too early", {{0, 1.0F}, {9, 1.0F}}, {}, {}},
      {"a check every 10 steps: at 21 against 9, then at 33",
       {{9, 1.0F}, {12, 5.0F}, {15, 5.0F}, {18, 5.0F}, {21, 1.0F}, {24, 1.0F}, {27, 5.0F}, {30, 5.0F}, {33, 1.0F}},
       {},
       {21, 33}},
      {"compared with the newest step that is far enough back",
       {{0, 1.0F}, {10, 0.5F}, {15, 0.7F}, {20, 0.6F}},
       {},
       {20}},
      {"from zero, any loss above", {{0, 0.0F}, {10, 0.1F}}, {}, {10}},
      {"from zero to zero", {{0, 0.0F}, {10, 0.0F}}, {}, {}},
      {"from zero to below", {{0, 0.0F}, {10, -0.1F}}, {}, {}},
      {"a negative loss that falls", {{0, -1.0F}, {10, -2.0F}}, {}, {}},
      {"a negative loss that rises", {{0, -2.0F}, {10, -1.0F}}, {}, {10}},
      {"NaN is skipped", {{0, 1.0F}, {10, NAN}, {11, 1.0F}}, {}, {11}},
      {"the first NaN is no beginning", {{0, NAN}, {5, 1.0F}, {10, 1.0F}, {15, 1.0F}}, {}, {15}},
      {"infinity is compared with nothing", {{0, INFINITY}, {10, 1.0F}}, {}, {}},
      {"other numbers of steps", {{0, 1.0F}, {2, 1.0F}, {4, 1.0F}}, {{"num_steps", "2"}}, {2, 4}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    for (const Point& point : c.points) world.save(point.step, {{"loss", scalar(point.loss)}});
    EXPECT_EQ(world.met("LossNotDecreasing", c.parameters), c.met) << c.what;
  }
}

TEST(LossNotDecreasing, ChoosesItsTensors) {
  struct Case {
    const char* what;
    Values first, last;
    Parameters parameters;
    std::vector<std::string> met;
  };
  const Values constant = {{"loss", scalar(1)}, {"a", scalar(1)}, {"b", scalar(1)}};
  const Case cases[] = {
      {"the collection losses", constant, constant, {}, {"loss"}},
      {"together with a list", constant, constant, {{"tensor_regex", "^a$"}}, {"a", "loss"}},
      {"without the collection",
       constant,
       constant,
       {{"tensor_regex", "^a$"}, {"use_losses_collection", "False"}},
       {"a"}},
      {"everything with one element where there are no losses",
       {{"a", scalar(1)}, {"w", floats({1, 2})}},
       {{"a", scalar(1)}, {"w", floats({1, 2})}},
       {},
       {"a"}},
      {"everything without the collection",
       constant,
       constant,
       {{"use_losses_collection", "False"}},
       {"a", "b", "loss"}},
      {"a list that matches nothing is not everything",
       {{"a", scalar(1)}},
       {{"a", scalar(1)}},
       {{"tensor_regex", "^x"}},
       {}},
      {"losses with several elements are none", {{"loss", floats({1, 1})}}, {{"loss", floats({1, 1})}}, {}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, c.first);
    world.save(10, c.last);
    std::vector<std::string> met;
    for (const auto& [name, count] : world.run("LossNotDecreasing", c.parameters).report.tensors) met.push_back(name);
    EXPECT_EQ(met, c.met) << c.what;
  }
}

TEST(LossNotDecreasing, ChoosesTheMode) {
  // The global steps are those of evaluation times ten; the loss of evaluation rises, that of training falls.
  const auto fill = [](RuleWorld* world, bool has_eval_loss) {
    for (std::int64_t i = 0; i < 12; ++i) {
      const auto level = static_cast<float>(i);
      world->save(10 * i, {{"loss", scalar(10 - level / 2)}}, ModeStep{Mode::kTrain, 9 * i});
      world->save(10 * i + 9, {{has_eval_loss ? "loss" : "accuracy", scalar(10 + level)}}, ModeStep{Mode::kEval, i});
    }
  };
  struct Case {
    const char* what;
    bool has_eval_loss;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"evaluation goes first: step 10 of it is global step 109", true, {}, {109}},
      {"a mode without losses is passed over", false, {}, {}},
      {"training by request", true, {{"mode", "TRAIN"}}, {}},
      {"all steps by request: step 100 against step 0", true, {{"mode", "GLOBAL"}, {"num_steps", "100"}}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    fill(&world, c.has_eval_loss);
    EXPECT_EQ(world.met("LossNotDecreasing", c.parameters), c.met) << c.what;
  }
  RuleWorld world;
  fill(&world, true);
  EXPECT_EQ(world.met("LossNotDecreasing", {{"mode", "GLOBAL"}, {"num_steps", "9"}}).front(), 9);
}

TEST(LossNotDecreasing, JudgesEachWorker) {
  RuleWorld world({}, {"a", "b"});
  for (const std::int64_t step : {0, 10}) {
    world.save(step, {{"loss", scalar(step == 0 ? 1.0F : 0.5F)}}, {}, "a");
    world.save(step, {{"loss", scalar(1)}}, {}, "b");
  }
  const RuleOutcome outcome = world.run("LossNotDecreasing");
  ASSERT_EQ(outcome.report.violations().size(), 1U);
  EXPECT_EQ(outcome.report.violations()[0].worker, "b");
}

TEST(LossNotDecreasing, AStoredMeanIsNoScalar) {
  RuleWorld world;
  for (const std::int64_t step : {0, 10}) world.save(step, {{reduced("mean", "loss"), scalar(1)}});
  const RuleOutcome outcome = world.run("LossNotDecreasing");
  EXPECT_TRUE(outcome.steps_met.empty());
  EXPECT_EQ(outcome.report.datapoints, 0);
}

TEST(LossNotDecreasing, RefusesBadParameters) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  const std::pair<const char*, const char*> bad[] = {
      {"num_steps", "0"}, {"diff_percent", "101"}, {"increase_threshold_percent", "-1"}, {"mode", "PREDICT"}};
  for (const auto& [name, text] : bad) {
    const auto rule = make_rule("LossNotDecreasing", {{name, text}}, {.base = &trial});
    ASSERT_FALSE(rule.ok()) << name;
    EXPECT_NE(rule.error().message.find(std::string(name) + " is \"" + text), std::string::npos)
        << rule.error().message;
  }
}

// Training and evaluation steps in the order given: T and V with a loss.
struct Event {
  char kind;
  float loss;
};
void save_events(RuleWorld* world, const std::vector<Event>& events, const std::string& worker = "worker_0") {
  std::int64_t step = 0;
  std::int64_t train = 0;
  std::int64_t eval = 0;
  for (const Event& event : events) {
    const ModeStep at = event.kind == 'T' ? ModeStep{Mode::kTrain, train++} : ModeStep{Mode::kEval, eval++};
    world->save(step++, {{"loss", scalar(event.loss)}}, at, worker);
  }
}

TEST(Overfit, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<Event> events;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"training 1.0, 1.0, then validation 1.2", {{'T', 1}, {'T', 1}, {'V', 1.2F}}, {}, {2}},
      {"validation 1.05", {{'T', 1}, {'T', 1}, {'V', 1.05F}}, {}, {}},
      {"with patience 2, 1.2 in one run of evaluation and 1.0 in the next",
       {{'T', 1}, {'V', 1.2F}, {'T', 1}, {'V', 1.0F}, {'T', 1}, {'V', 1.2F}},
       {{"patience", "2"}},
       {}},
      {"with patience 2, twice 1.2", {{'T', 1}, {'V', 1.2F}, {'T', 1}, {'V', 1.2F}}, {{"patience", "2"}}, {3}},
      {"the ratio equal to the threshold", {{'T', 1}, {'V', 1.5F}}, {{"ratio_threshold", "0.5"}}, {}},
      {"the mean of the current run of evaluation", {{'T', 1}, {'V', 1.5F}, {'V', 0.5F}, {'V', 0.5F}}, {}, {1}},
      {"the mean of training since the last run", {{'T', 9}, {'V', 9}, {'T', 1}, {'T', 3}, {'V', 2.1F}}, {}, {}},
      {"steps before start_step are not judged",
       {{'T', 1}, {'V', 2}, {'T', 1}, {'V', 2}},
       {{"start_step", "2"}, {"patience", "2"}},
       {}},
      {"a training loss of zero is not judged", {{'T', 0}, {'V', 2}}, {}, {}},
      {"a negative training loss counts by its magnitude", {{'T', -1}, {'V', -0.5F}}, {}, {1}},
      {"validation without training", {{'V', 2}, {'T', 1}}, {}, {}},
      {"NaN is not above, and ends the patience",
       {{'T', 1}, {'V', 2}, {'T', 1}, {'V', NAN}, {'T', 1}, {'V', 2}},
       {{"patience", "2"}},
       {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    save_events(&world, c.events);
    EXPECT_EQ(world.met("Overfit", c.parameters), c.met) << c.what;
  }
}

TEST(Overfit, TrainingStepsWithoutALossStillEndARun) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}}, ModeStep{Mode::kTrain, 0});
  world.save(1, {{"loss", scalar(1.2F)}}, ModeStep{Mode::kEval, 0});
  // Global step 5, but evaluation step 1: there was training between. The last training mean stays.
  world.save(5, {{"loss", scalar(1.0F)}}, ModeStep{Mode::kEval, 1});
  const RuleOutcome outcome = world.run("Overfit");
  EXPECT_EQ(outcome.steps_met, Steps{1});  // 1.0 alone; together with 1.2 it would be 1.1 > 1.0
}

TEST(Overfit, NamesOfXgboostTell) {
  struct Case {
    const char* what;
    Values values;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"train and validation", {{"train-logloss", scalar(1)}, {"validation-logloss", scalar(1.2F)}}, {}, true},
      {"train and valid, near", {{"train-logloss", scalar(1)}, {"valid-logloss", scalar(1.05F)}}, {}, false},
      {"train and eval", {{"train-logloss", scalar(1)}, {"eval-logloss", scalar(1.2F)}}, {}, true},
      {"train and test", {{"train-logloss", scalar(1)}, {"test-logloss", scalar(1.2F)}}, {}, true},
      {"neither name", {{"a-logloss", scalar(1)}, {"b-logloss", scalar(1.2F)}}, {}, false},
      {"means of both kinds",
       {{"train-logloss", scalar(1)}, {"train-x-logloss", scalar(3)}, {"test-logloss", scalar(2.1F)}},
       {},
       false},
      {"by a pattern instead of the collection",
       {{"train-auc", scalar(1)}, {"test-auc", scalar(2)}},
       {{"tensor_regex", "-auc$"}},
       true},
      {"not in the collection", {{"train-auc", scalar(1)}, {"test-auc", scalar(2)}}, {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world(Collections{{"losses", {"loss$"}}});
    world.save(0, c.values, ModeStep{Mode::kGlobal, 0});
    EXPECT_EQ(world.met("Overfit", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(Overfit, WhatTheModelSaysOfADataSetGoesBeforeItsName) {
  RuleWorld world;
  ModelDescription model;
  model.data = {{"validation_0", "train"}, {"validation_1", "validation"}};
  world.made().write(format::model_path("worker_0"), format::encode_model(model, "xgboost", 1));
  world.save(0, {{"validation_0-logloss", scalar(1)}, {"validation_1-logloss", scalar(1.2F)}},
             ModeStep{Mode::kGlobal, 0});
  EXPECT_EQ(world.met("Overfit"), Steps{0});
}

TEST(Overfit, JudgesEachWorker) {
  RuleWorld world({}, {"a", "b"});
  save_events(&world, {{'T', 1}, {'V', 1}}, "a");
  save_events(&world, {{'T', 1}, {'V', 2}}, "b");
  const RuleOutcome outcome = world.run("Overfit");
  EXPECT_EQ(outcome.steps_met, Steps{1});
  EXPECT_EQ(outcome.report.violations_count, 1);
}

TEST(Overtraining, WorkedCases) {
  const Parameters two = {{"patience_train", "2"}, {"patience_validation", "2"}};
  struct Case {
    const char* what;
    std::vector<Event> events;
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"neither improves by more than 0.01",
       {{'T', 1.0F}, {'V', 1.0F}, {'T', 0.995F}, {'V', 1.0F}, {'T', 0.993F}, {'V', 1.01F}},
       two,
       {5}},
      {"both improve", {{'T', 1.0F}, {'V', 1.0F}, {'T', 0.9F}, {'V', 0.95F}, {'T', 0.8F}, {'V', 0.9F}}, two, {}},
      {"validation still improves", {{'T', 1}, {'V', 1}, {'T', 1}, {'V', 0.5F}, {'T', 1}, {'V', 0.25F}}, two, {}},
      {"either of them, by request",
       {{'T', 1}, {'V', 1}, {'T', 1}, {'V', 0.5F}, {'T', 1}, {'V', 0.25F}},
       {{"patience_train", "2"}, {"patience_validation", "2"}, {"combine", "any"}},
       {4, 5}},
      {"training alone", {{'T', 1}, {'T', 1}, {'T', 1}, {'T', 0.5F}, {'T', 1}}, two, {2}},
      {"an improvement of delta is none",
       {{'T', 1}, {'T', 0.75F}, {'T', 0.5F}},
       {{"patience_train", "1"}, {"delta", "0.25"}},
       {1}},
      {"NaN neither improves nor counts", {{'T', NAN}, {'T', 1}, {'T', NAN}, {'T', 1}, {'T', 1}}, two, {4}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    save_events(&world, c.events);
    EXPECT_EQ(world.met("Overtraining", c.parameters), c.met) << c.what;
  }
}

TEST(Overtraining, OneValueIsTheMeanOfTheLossesOfAStep) {
  RuleWorld world;
  world.save(0, {{"train-loss", scalar(1)}, {"train-b-loss", scalar(3)}, {"test-loss", scalar(1)}});
  world.save(1, {{"train-loss", scalar(3)}, {"train-b-loss", scalar(1)}, {"test-loss", scalar(1)}});
  EXPECT_EQ(world.met("Overtraining", {{"patience_train", "1"}, {"patience_validation", "1"}}), Steps{1});
}

TEST(StalledTraining, WorkedCases) {
  struct Case {
    const char* what;
    double new_file_s;  // negative: none
    double end_s;       // negative: never
    bool is_met;
  };
  const Case cases[] = {
      {"nothing new for 1800 s", -1, -1, true},
      {"the end marker is there by then", -1, 1790, false},
      {"a new file at 1795 s, then the end", 1795, 2000, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"loss", scalar(1)}});
    const double start_s = world.clock().now_s();
    bool has_new = false;
    bool has_end = false;
    const auto sleep = [&](double seconds) {
      world.clock().advance(seconds);
      const double now_s = world.clock().now_s() - start_s;
      if (c.new_file_s >= 0 && now_s >= c.new_file_s && !has_new) {
        has_new = true;
        world.save(1, {{"loss", scalar(1)}});
      }
      if (c.end_s >= 0 && now_s >= c.end_s && !has_end) {
        has_end = true;
        world.end();
      }
    };
    const RuleOutcome outcome = world.run("StalledTrainingRule", {}, {.follow = true, .sleep = sleep});
    EXPECT_EQ(outcome.report.triggered > 0, c.is_met) << c.what;
    if (c.is_met) {
      EXPECT_EQ(outcome.report.violations()[0].value, 1800) << c.what;
    }
  }
}

TEST(StalledTraining, AFinishedPassNeverStalls) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  EXPECT_EQ(world.run("StalledTrainingRule", {{"threshold", "1"}}).report.triggered, 0);
}

TEST(StalledTraining, LooksOftenEnoughAndWaitsLongEnough) {
  struct Case {
    const char* threshold;
    double poll_s, patience_s;
  };
  for (const Case& c : {Case{"1800", 10, 1800}, Case{"5", 0.5, 5}}) {
    const auto rule = make_rule("stalled_training_rule", {{"threshold", c.threshold}}, {});
    ASSERT_TRUE(rule.ok());
    EXPECT_EQ(rule->rule->pace().poll_s, c.poll_s);
    EXPECT_EQ(rule->rule->pace().patience_s, c.patience_s);
  }
}

TEST(StalledTraining, StoppingIsAnActionOfItsOwn) {
  const auto quiet = make_rule("StalledTrainingRule", {{"training_job_name_prefix", "a"}}, {});
  EXPECT_EQ(quiet->rule->action(), "");
  const auto stops = make_rule("StalledTrainingRule",
                               {{"stop_training_on_fire", "True"}, {"training_job_name_prefix", "my-\"job"}}, {});
  EXPECT_EQ(stops->rule->action(), R"({"name": "stoptraining", "training_job_prefix": "my-\"job"})");
}

}  // namespace
}  // namespace tornasole::rules
