// Rules inside a training: what they make the hook save, what happens when a condition is met, how they end.

#include "tornasole/inprocess_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tornasole/trial.h"

namespace tornasole {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class InProcessRulesTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("inprocess-" + std::to_string(getpid()) + "-" +
                                                      testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(path_);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  HookOptions options() {
    HookOptions options{.out_dir = path_.string(), .save_config = {.save_interval = 1}};
    options.log = [this](LogLevel level, std::string_view message) {
      const std::lock_guard lock(mutex_);
      if (level >= LogLevel::kWarning) log_.emplace_back(message);
    };
    return options;
  }
  Hook open(HookOptions options) {
    auto hook = Hook::open(std::move(options));
    EXPECT_TRUE(hook.ok()) << (hook.ok() ? "" : hook.error().message);
    return std::move(*hook);
  }
  static InProcessRules start(Hook& hook, std::vector<InProcessRule> rules,
                              InProcessOptions options = {.poll_s = 0.01, .profile = Profile::kReference}) {
    auto started = InProcessRules::start(&hook, std::move(rules), std::move(options));
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().message);
    return std::move(*started);
  }
  // Gradients of this size, and weights that are fine.
  static void train(Hook& hook, int steps, float size, int first = 0) {
    for (int i = 0; i < steps; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("gradient/fc.weight", std::vector<float>{size, -size});
      step.save("fc.weight", std::vector<float>{1, static_cast<float>(first + i)});
      step.save("loss", 1.0F);
    }
  }
  static bool wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  Trial trial() {
    auto opened = Trial::open({.path = path_.string()});
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    return std::move(*opened);
  }

  std::filesystem::path path_;
  std::mutex mutex_;
  std::vector<std::string> log_;
};

TEST_F(InProcessRulesTest, AConditionIsMetWhileTheTrainingRuns) {
  Hook hook = open(options());
  std::atomic<int> met = 0;
  InProcessRules rules = start(
      hook, {{.rule = "vanishing_gradient"}},
      {.poll_s = 0.01, .profile = Profile::kReference, .on_met = [&](const RuleOutcome& rule, const Violation& newest) {
         EXPECT_EQ(rule.name, "VanishingGradient");
         EXPECT_EQ(newest.tensor, "gradient/fc.weight");
         ++met;
       }});
  train(hook, 3, 1e-9F);
  EXPECT_TRUE(wait_for([&] { return met == 3; }));
  train(hook, 2, 1.0F, 3);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  const auto outcomes = rules.outcomes();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].steps_met, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(outcomes[0].steps_evaluated, 5);
  EXPECT_THAT(log(), Contains(HasSubstr("rule VanishingGradient at step 0: gradient/fc.weight")));
  EXPECT_EQ(std::ranges::count_if(log(), [](const auto& line) { return line.starts_with("rule "); }), 1);
}

TEST_F(InProcessRulesTest, TheHookSavesWhatTheRulesNeedAndNoMore) {
  Hook hook = open(options());
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}, {.rule = "GradNormSpike"}});
  train(hook, 2, 1.0F);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  const Trial run = trial();
  EXPECT_FALSE(run.has_tensor("fc.weight"));
  const auto gradient = run.tensor("gradient/fc.weight");
  ASSERT_TRUE(gradient.ok());
  EXPECT_FALSE(gradient->has_value({Mode::kTrain, 0}));
  const auto stored = gradient->stored_reductions({Mode::kTrain, 0});
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(*stored, (std::vector<Reduction>{{ReductionKind::kMean, true}, {ReductionKind::kL2, false}}));
}

TEST_F(InProcessRulesTest, WhatIsSavedAnywayStaysAsItIs) {
  HookOptions whole = options();
  whole.include_collections = {"gradients"};
  Hook hook = open(std::move(whole));
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}});
  train(hook, 1, 1.0F);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  const Trial run = trial();
  EXPECT_TRUE(run.tensor("gradient/fc.weight")->has_value({Mode::kTrain, 0}));
  EXPECT_THAT(*run.tensor("gradient/fc.weight")->stored_reductions({Mode::kTrain, 0}), IsEmpty());
  EXPECT_EQ(rules.outcomes()[0].steps_evaluated, 1);
}

TEST_F(InProcessRulesTest, ReductionsThatAreSavedAnywayAreCompleted) {
  HookOptions reduced = options();
  reduced.include_collections = {"gradients"};
  reduced.reduction_config = ReductionConfig{.reductions = {"max"}};
  Hook hook = open(std::move(reduced));
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}});
  train(hook, 1, 1.0F);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  const Trial run = trial();
  const auto stored = run.tensor("gradient/fc.weight")->stored_reductions({Mode::kTrain, 0});
  EXPECT_EQ(*stored, (std::vector<Reduction>{{ReductionKind::kMax, false}, {ReductionKind::kMean, true}}));
}

TEST_F(InProcessRulesTest, TensorsOfAFindingAreSavedWholeForAWhile) {
  Hook hook = open(options());
  std::atomic<bool> is_met = false;
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}},
                               {.poll_s = 0.01,
                                .detail_steps = 2,
                                .profile = Profile::kReference,
                                .on_met = [&](const RuleOutcome&, const Violation&) { is_met = true; }});
  train(hook, 1, 1e-9F);
  ASSERT_TRUE(wait_for([&] { return is_met.load(); }));
  train(hook, 5, 1.0F, 1);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  const Trial run = trial();
  std::vector<std::int64_t> whole;
  for (std::int64_t step = 0; step < 6; ++step) {
    if (run.tensor("gradient/fc.weight")->has_value({Mode::kTrain, step})) whole.push_back(step);
  }
  EXPECT_EQ(whole, (std::vector<std::int64_t>{1, 2}));
  EXPECT_FALSE(run.has_tensor("fc.weight"));
}

TEST_F(InProcessRulesTest, WhatCannotRunIsRefused) {
  const struct {
    const char* what;
    InProcessRule rule;
    const char* message;
  } kCases[] = {
      {"a rule that does not exist", {.rule = "VanishingGradent"}, "VanishingGradient"},
      {"a parameter that does not exist", {.rule = "VanishingGradient", .parameters = {{"limit", "1"}}}, "limit"},
      {"whole values", {.rule = "DeadRelu"}, "needs whole values"},
      {"a clock", {.rule = "StalledTrainingRule"}, "is about time"},
      {"another run", {.rule = "SimilarAcrossRuns"}, "other trials"},
  };
  const std::filesystem::path root = path_;
  for (const auto& c : kCases) {
    path_ = root / c.what;
    Hook hook = open(options());
    const auto before = hook.saved_collections();
    const auto started = InProcessRules::start(&hook, {c.rule}, {.profile = Profile::kReference});
    ASSERT_FALSE(started.ok()) << c.what;
    EXPECT_THAT(started.error().message, HasSubstr(c.message)) << c.what;
    EXPECT_EQ(hook.saved_collections(), before) << c.what;
  }
  path_ = root / "dry";
  HookOptions dry = options();
  dry.dry_run = true;
  Hook hook = open(std::move(dry));
  EXPECT_FALSE(InProcessRules::start(&hook, {{.rule = "VanishingGradient"}}).ok());
  path_ = root / "late";
  Hook late = open(options());
  train(late, 1, 1.0F);
  EXPECT_THAT(InProcessRules::start(&late, {{.rule = "VanishingGradient"}}).error().message,
              HasSubstr("before the first step"));
  path_ = root;
}

TEST_F(InProcessRulesTest, LossesAndEverythingMayBeWatched) {
  Hook hook = open(options());
  InProcessRules rules =
      start(hook, {{.rule = "LossNotDecreasing", .parameters = {{"num_steps", "2"}}}, {.rule = "ExplodingTensor"}});
  train(hook, 5, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  const auto outcomes = rules.outcomes();
  EXPECT_THAT(outcomes[0].steps_met, Not(IsEmpty()));
  EXPECT_EQ(outcomes[1].steps_met.size(), 5U);
  EXPECT_TRUE(trial().has_tensor("fc.weight"));
}

TEST_F(InProcessRulesTest, WithoutAProfileWhatHasLastedIsTold) {
  const auto noise = [](int i) { return 0.5F * std::sin(static_cast<float>(i) * 12.9898F); };
  const struct {
    const char* what;
    InProcessRule rule;
    std::function<float(int)> loss;
    bool is_met;
    std::int64_t not_before;
  } kCases[] = {
      {"a loss that falls through noise",
       {.rule = "LossNotDecreasing"},
       [&](int i) { return 4 * std::exp(static_cast<float>(-i) / 60) + noise(i); },
       false,
       0},
      {"a warm-up, and then it falls",
       {.rule = "LossNotDecreasing"},
       [&](int i) { return (i < 30 ? 2.0F : 2 * std::exp(static_cast<float>(30 - i) / 40)) + 0.02F * noise(i); },
       false,
       0},
      {"a loss that stays", {.rule = "LossNotDecreasing"}, [&](int i) { return 2 + 0.02F * noise(i); }, true, 99},
      {"a loss that climbs", {.rule = "loss_divergence"}, [](int i) { return 1 + static_cast<float>(i); }, true, 20},
      {"NaN", {.rule = "ExplodingTensor"}, [](int i) { return i < 40 ? 1.0F : NAN; }, true, 40},
      {"parameters are those of the documented rule",
       {.rule = "LossNotDecreasing", .parameters = {{"num_steps", "2"}}},
       [&](int i) { return 4 * std::exp(static_cast<float>(-i) / 60) + noise(i); },
       true,
       1},
  };
  const std::filesystem::path root = path_;
  for (const auto& c : kCases) {
    path_ = root / c.what;
    Hook hook = open(options());
    InProcessRules rules = start(hook, {c.rule}, {.poll_s = 0.01});
    for (int i = 0; i < 200; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("loss", c.loss(i));
    }
    EXPECT_TRUE(hook.close().ok());
    rules.stop();
    const RuleOutcome outcome = rules.outcomes().at(0);
    EXPECT_FALSE(outcome.error.has_value()) << c.what;
    EXPECT_EQ(!outcome.steps_met.empty(), c.is_met) << c.what;
    if (c.is_met) {
      EXPECT_GE(outcome.steps_met.front(), c.not_before) << c.what;
    }
  }
  path_ = root;
}

TEST_F(InProcessRulesTest, WhatRulesNeedIsDerived) {
  const struct {
    const char* rule;
    Profile profile;
    const char* derived;
  } kCases[] = {
      {"SilentOptimizer", Profile::kCheck, "derived/update/fc.weight"},
      {"SilentOptimizer", Profile::kReference, "derived/hash/fc.weight"},
      {"DeadRelu", Profile::kCheck, "derived/unit_activity/relu_output_0"},
      {"InputRange", Profile::kCheck, "derived/quantiles/Net_input_0"},
      {"ClassImbalance", Profile::kCheck, "derived/counts/CrossEntropyLoss_input_1"},
  };
  const std::filesystem::path root = path_;
  for (const auto& c : kCases) {
    path_ = root / c.rule / (c.profile == Profile::kCheck ? "check" : "reference");
    Hook hook = open(options());
    InProcessRules rules = start(hook, {{.rule = c.rule}}, {.poll_s = 0.01, .profile = c.profile});
    for (int i = 0; i < 3; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("Net_input_0", std::vector<float>{1, 2});
      step.save("relu_output_0", std::vector<float>{0, 2});
      step.save("CrossEntropyLoss_input_1", std::vector<std::int64_t>{0, 2});
      step.save("fc.weight", std::vector<float>{1, static_cast<float>(i)});
      step.save("loss", 1.0F);
    }
    EXPECT_TRUE(hook.close().ok());
    rules.stop();
    EXPECT_EQ(rules.outcomes()[0].steps_evaluated, 3) << c.rule;
    const Trial run = trial();
    EXPECT_TRUE(run.has_tensor(c.derived)) << c.rule;
    const std::string_view source = std::string_view(c.derived).substr(std::string_view(c.derived).rfind('/') + 1);
    EXPECT_FALSE(run.tensor(source)->has_value({Mode::kTrain, 0})) << c.rule;
  }
  path_ = root;
}

TEST_F(InProcessRulesTest, StatisticsAreChosenBeforeTheFirstStep) {
  Hook hook = open(options());
  EXPECT_THAT(hook.derive({"median"}).error().message, HasSubstr("'median'"));
  EXPECT_TRUE(hook.derive({"counts", "counts"}).ok());
  EXPECT_EQ(hook.options().derived, (std::vector<std::string>{"counts"}));
  train(hook, 1, 1.0F);
  EXPECT_THAT(hook.derive({"update"}).error().message, HasSubstr("before the first step"));
}

TEST_F(InProcessRulesTest, AForkedChildHasNoneAndLeavesAtOnce) {
  Hook hook = open(options());
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}});
  train(hook, 2, 1.0F);
  EXPECT_TRUE(wait_for([&] { return rules.outcomes()[0].steps_evaluated == 2; }));
  const pid_t child = fork();
  if (child == 0) {
    train(hook, 1, 1.0F);
    const bool is_empty = rules.outcomes().empty();
    rules.stop();
    _exit(is_empty ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  train(hook, 1, 1e-9F, 2);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  EXPECT_EQ(rules.outcomes()[0].steps_met, (std::vector<std::int64_t>{2}));
}

TEST_F(InProcessRulesTest, ACallbackThatThrowsEndsTheRulesAlone) {
  Hook hook = open(options());
  InProcessRules rules =
      start(hook, {{.rule = "VanishingGradient"}},
            {.poll_s = 0.01, .profile = Profile::kReference, .on_met = [](const RuleOutcome&, const Violation&) {
               throw std::runtime_error("mine");
             }});
  train(hook, 1, 1e-9F);
  EXPECT_TRUE(wait_for([&] { return std::ranges::count(log(), "rules inside the training have ended: mine") == 1; }));
  train(hook, 2, 1e-9F, 1);
  EXPECT_TRUE(hook.close().ok());
  rules.stop();
  EXPECT_EQ(trial().steps().size(), 3U);
}

TEST_F(InProcessRulesTest, NothingIsStartedForARunThatSavesNothing) {
  Hook hook = open(options());
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}});
  rules.stop();
  EXPECT_EQ(rules.outcomes()[0].steps_evaluated, 0);
  train(hook, 3, 1e-9F);  // after the end of the rules the training goes on
  EXPECT_TRUE(hook.close().ok());
  EXPECT_EQ(rules.outcomes()[0].steps_evaluated, 0);
}

TEST_F(InProcessRulesTest, ARunThatIsTakenAwayHurtsNobody) {
  Hook hook = open(options());
  InProcessRules rules = start(hook, {{.rule = "VanishingGradient"}});
  train(hook, 1, 1.0F);
  EXPECT_TRUE(wait_for([&] { return rules.outcomes()[0].steps_evaluated == 1; }));
  std::filesystem::remove_all(path_);
  train(hook, 2, 1.0F, 1);
  static_cast<void>(hook.close());
  rules.stop();
}

}  // namespace
}  // namespace tornasole
