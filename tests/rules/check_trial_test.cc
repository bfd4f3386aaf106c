// The questions of check, asked of whole trials in memory.

#include <algorithm>
#include <cmath>

#include "format/model_file.h"
#include "rules/check/tensor_role.h"
#include "rules/rule_world.h"
#include "tornasole/check.h"

namespace tornasole::rules {
namespace {

TEST(Check, ReadsATrialAndPutsCausesFirst) {
  RuleWorld world;
  ModelDescription model;
  model.modules = {{"Net", "Net", ""}, {"fc", "Linear", "Net"}};
  model.parameters = {{.name = "fc.weight", .module = "fc", .shape = {2, 2}, .dtype = "float32"}};
  model.losses = {{.name = "loss", .type = "MSELoss"}};
  world.made().write("tornasole/worker_0_model.json", format::encode_model(model, "pytorch", 1));
  float weight = 0.1F;
  for (std::int64_t step = 0; step < 40; ++step) {
    weight *= -3;
    const float loss = step < 30 ? 2.0F : NAN;
    world.save(step,
               {{"loss", scalar(loss)}, {"fc.weight", floats({weight, 2 * weight, -weight, 3 * weight}, {2, 2})}});
  }
  Trial trial = world.open();
  const auto report = check(trial);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->has_findings());
  EXPECT_EQ(report->steps, 40);
  ASSERT_GE(report->verdicts.size(), 2U);
  EXPECT_EQ(report->verdicts[0].rule, "LearningRateSanity");
  EXPECT_FALSE(report->verdicts[0].symptom_of.has_value());
  for (std::size_t i = 1; i < report->verdicts.size(); ++i) {
    EXPECT_EQ(report->verdicts[i].symptom_of, 0U) << report->verdicts[i].rule;
  }
  EXPECT_GT(report->checked.size(), 3U);

  const auto only = check(trial, {.rules = {"Overfit"}});
  ASSERT_TRUE(only.ok());
  EXPECT_TRUE(only->verdicts.empty());
  EXPECT_EQ(only->not_checked.size(), 1U);
  EXPECT_FALSE(check(trial, {.rules = {"Nonsense"}}).ok());
}

TEST(Check, InputsThatTheModelScalesItselfMayBeRaw) {
  struct Case {
    const char* what;
    std::vector<ModelDescription::Module> before;  // the dense layer
    std::size_t verdicts;
  };
  const Case cases[] = {
      {"nothing scales them", {{.path = "flat", .type = "Flatten", .parent = "Net", .call_order = 1}}, 1},
      {"a layer made for it", {{.path = "scale", .type = "Rescaling", .parent = "Net"}}, 0},
      {"computing", {{.path = "tf.math.truediv", .type = "TFOpLambda", .parent = "Net", .call_order = 1}}, 0},
      {"computing behind the first weights",
       {{.path = "half", .type = "Multiply", .parent = "Net", .call_order = 3}},
       1},
      {"a first layer that normalizes", {{.path = "norm", .type = "BatchNorm2d", .parent = "Net", .call_order = 1}}, 0},
      {"a second layer that normalizes",
       {{.path = "norm", .type = "BatchNorm2d", .parent = "Net", .call_order = 3}},
       1},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    ModelDescription model;
    model.modules = {{.path = "Net", .type = "Net", .parent = "", .call_order = 0}};
    model.modules.insert(model.modules.end(), c.before.begin(), c.before.end());
    model.modules.push_back({.path = "fc", .type = "Linear", .parent = "Net", .call_order = 2});
    model.parameters = {{.name = "fc.weight", .module = "fc", .shape = {2, 2}, .dtype = "float32"},
                        {.name = "norm.weight", .module = "norm", .shape = {2}, .dtype = "float32"}};
    model.inputs = {"Net_input_0"};
    world.made().write("tornasole/worker_0_model.json", format::encode_model(model, "pytorch", 1));
    for (std::int64_t step = 0; step < 5; ++step) {
      const auto shade = static_cast<float>(step);
      world.save(step, {{"Net_input_0", floats({0, 255, 120 + shade, 90 - shade, 200, 17, 64, 3}, {4, 2})}});
    }
    Trial trial = world.open();
    const auto report = check(trial, {.rules = {"InputRange"}});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->verdicts.size(), c.verdicts) << c.what;
  }
}

TEST(Check, WhatComesAfterNanIsNotItsCause) {
  RuleWorld world;
  ModelDescription model;
  model.modules = {{"Net", "Net", ""}, {"act", "ReLU", "Net"}};
  model.losses = {{.name = "loss", .type = "MSELoss"}};
  world.made().write("tornasole/worker_0_model.json", format::encode_model(model, "pytorch", 1));
  for (std::int64_t step = 0; step < 20; ++step) {
    const bool is_bad = step >= 6;
    const float value = is_bad ? NAN : 1.0F;
    world.save(step, {{"loss", scalar(is_bad ? NAN : 2.0F - 0.1F * static_cast<float>(step))},
                      {"act_output_0", filled(value, {16, 4})}});
  }
  Trial trial = world.open();
  const auto report = check(trial);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_FALSE(report->verdicts.empty());
  EXPECT_EQ(report->verdicts[0].rule, "NonFiniteProvenance");
  EXPECT_EQ(report->verdicts[0].first_step, 6);
  for (const Verdict& verdict : report->verdicts) EXPECT_NE(verdict.rule, "DeadRelu");
}

TEST(Check, OneHotLabelsAreOneClassEach) {
  RuleWorld world;
  ModelDescription model;
  model.modules = {{"net", "Sequential", ""}, {"dense", "Dense", "net"}};
  model.losses = {
      {.name = "loss", .type = "categorical_crossentropy", .predictions = {"predictions"}, .labels = {"labels"}}};
  world.made().write("tornasole/worker_0_model.json", format::encode_model(model, "tensorflow", 1));
  constexpr std::size_t kClasses = 16;  // zeros come fifteen times as often as ones
  for (std::int64_t step = 0; step < 20; ++step) {
    std::vector<float> labels(32 * kClasses);
    std::vector<float> predictions(32 * kClasses, 1.0F / kClasses);
    std::vector<float> mean(3 * kClasses, 1.0F / kClasses);
    for (std::size_t i = 0; i < 32; ++i) labels[i * kClasses + i % kClasses] = 1;
    world.save(step, {{"loss", scalar(2.77F - 0.05F * static_cast<float>(step))},
                      {"labels", floats(labels, {32, kClasses})},
                      {"derived/across_samples/labels", floats(mean, {3, kClasses})},
                      {"predictions", floats(predictions, {32, kClasses})}});
  }
  Trial trial = world.open();
  const auto report = check(trial, {.rules = {"ClassImbalance", "InitialLoss", "LossActivationMismatch"}});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->verdicts.empty()) << report->summary;
}

TEST(Check, AStepThatWasCutShortTellsWhy) {
  RuleWorld world;
  ModelDescription model;
  model.modules = {{"Net", "Net", ""}, {"fc", "Linear", "Net"}};
  model.losses = {{.name = "loss", .type = "MSELoss"}};
  world.made().write("tornasole/worker_0_model.json", format::encode_model(model, "pytorch", 1));
  for (std::int64_t step = 0; step < 20; ++step) {
    world.save(step, {{"loss", scalar(2.0F - 0.1F * static_cast<float>(step))}});
  }
  // The program raised when it saw the loss.
  tools::MadeStep cut{.step = 20, .mode = Mode::kTrain, .mode_step = 20, .is_partial = true};
  cut.values.push_back({"loss", scalar(NAN)});
  world.made().step(cut);
  Trial trial = world.open();
  EXPECT_EQ(trial.steps().size(), 20U);
  const auto report = check(trial);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_FALSE(report->verdicts.empty());
  EXPECT_EQ(report->verdicts[0].rule, "NonFiniteProvenance");
  EXPECT_EQ(report->verdicts[0].first_step, 20);
}

TEST(Check, KerasNamesAndActivationsHaveTheirRoles) {
  RuleWorld world;
  ModelDescription model;
  model.modules = {{"net", "Sequential", ""},
                   {.path = "dense", .type = "Dense", .parent = "net", .activation = "relu"}};
  model.parameters = {{.name = "dense/weights/dense/kernel:0", .module = "dense", .shape = {4, 3}, .dtype = "float32"},
                      {.name = "dense/weights/dense/bias:0", .module = "dense", .shape = {3}, .dtype = "float32"}};
  model.losses = {{.name = "loss", .type = "MeanSquaredError"}};
  world.made().write("tornasole/worker_0_model.json", format::encode_model(model, "tensorflow", 1));
  for (std::int64_t step = 0; step < 20; ++step) {
    world.save(step,
               {{"loss", scalar(2.0F - 0.05F * static_cast<float>(step))}, {"dense/outputs", filled(0, {16, 3})}});
  }
  Trial trial = world.open();
  const RoleFinder roles(trial);
  EXPECT_EQ(roles.role_of("dense/outputs").layer_class, "relu");
  EXPECT_EQ(roles.role_of("dense/inputs").layer_class, "dense");
  EXPECT_EQ(roles.role_of("gradients/dense/kernelGrad").parameter, "dense/weights/dense/kernel:0");
  EXPECT_EQ(roles.role_of("gradients/dense/kernelGrad").rank, 2);
  EXPECT_EQ(roles.role_of("gradients/dense/biasGrad").rank, 1);
  const auto report = check(trial, {.rules = {"DeadRelu"}});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->verdicts.size(), 1U);
}

TEST(Check, ATrialOfAnotherWriterIsJudgedByNamesAndCollections) {
  RuleWorld world;
  for (std::int64_t step = 0; step < 30; ++step) {
    world.save(step, {{"loss", scalar(2)},
                      {"dense.weight", floats({1, 2, -1, -2}, {2, 2})},
                      {"gradient/dense.weight", filled(0.5F, {2, 2})}});
  }
  Trial trial = world.open();
  const auto report = check(trial);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_FALSE(report->verdicts.empty());
  EXPECT_EQ(report->verdicts[0].rule, "SilentOptimizer");
  EXPECT_EQ(report->verdicts[0].severity, Severity::kError);
}

TEST(Check, TheReferenceProfileRunsTheRulesAsDocumented) {
  RuleWorld world;
  for (std::int64_t step = 0; step < 3; ++step) {
    world.save(step, {{"gradient/a.weight", filled(1e-9F, {2, 2})}, {"gradient/b.weight", filled(1, {2, 2})}});
  }
  Trial trial = world.open();
  const auto report = check(trial, {.profile = Profile::kReference, .rules = {"VanishingGradient", "Overfit"}});
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->verdicts.size(), 1U);
  EXPECT_EQ(report->verdicts[0].rule, "VanishingGradient");
  EXPECT_EQ(report->verdicts[0].tensors, std::vector<std::string>{"gradient/a.weight"});
  EXPECT_EQ(report->verdicts[0].last_step, 2);
  ASSERT_EQ(report->not_checked.size(), 1U);
  EXPECT_EQ(report->not_checked[0].rule, "Overfit");
  const auto all = check(trial, {.profile = Profile::kReference});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->checked.size() + all->not_checked.size(), builtin_rules().size());
}

TEST(Check, AnEmptyTrialIsNotJudged) {
  RuleWorld world;
  Trial trial = world.open();
  const auto report = check(trial);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->has_findings());
  EXPECT_TRUE(report->checked.empty());
  EXPECT_FALSE(report->not_checked.empty());
}

}  // namespace
}  // namespace tornasole::rules
