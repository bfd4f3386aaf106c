// What values cannot tell, read back: the models of the workers, and the facts of a step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "format/model_file.h"
#include "trial_world.h"

namespace tornasole::trial {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Bytes model_text(const std::string& device, std::int64_t world_size = 1) {
  ModelDescription model;
  model.modules = {{.path = "", .type = "Net", .parent = ""}};
  model.device = device;
  return format::encode_model(model, "pytorch", world_size);
}

std::vector<std::string> workers_of(const Trial& trial) {
  std::vector<std::string> workers;
  for (const auto& [worker, model] : trial.models()) workers.push_back(worker);
  return workers;
}

void put_model(TrialWorld& world, const std::string& worker, const Bytes& text) {
  world.put(format::model_path(format::encode_worker(worker)), text);
}

TEST(TrialModels, OfEachWorkerThatSaidSomething) {
  TrialWorld world;
  world.write_collections({"/job:a/device:GPU:0", "b", "c"});
  put_model(world, "/job:a/device:GPU:0", model_text("cuda:0", 3));
  put_model(world, "c", model_text("cpu", 3));
  world.put("tornasole/_model.json", "no worker");
  world.put("tornasole/a b_model.json", "not a name of ours");
  world.put("tornasole/c_model.json.tmp", "half");
  world.clock().advance(10);
  const Trial trial = must_open(world);
  EXPECT_THAT(workers_of(trial), ElementsAre("/job:a/device:GPU:0", "c"));
  const StoredModel& stored = trial.models().find("/job:a/device:GPU:0")->second;
  EXPECT_EQ(stored.model.modules.at(0).type, "Net");
  EXPECT_EQ(stored.model.device, "cuda:0");
  EXPECT_EQ(stored.framework, "pytorch");
  EXPECT_EQ(stored.world_size, 3);
  EXPECT_EQ(trial.damage_count(), 0);
}

TEST(TrialModels, ARunWithoutThemHasNone) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write_steps(0, 1, {"worker_0"});
  EXPECT_TRUE(must_open(world).models().empty());
}

TEST(TrialModels, ARefreshReadsWhatChanged) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  put_model(world, "a", model_text("first"));
  Trial trial = must_open(world);
  const auto device = [&](const char* worker) { return trial.models().find(worker)->second.model.device; };
  EXPECT_EQ(device("a"), "first");
  world.clock().advance(1);
  put_model(world, "a", model_text("other"));
  put_model(world, "b", model_text("new"));
  EXPECT_EQ(device("a"), "first") << "nothing refreshes behind a getter";
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(device("a"), "other");
  EXPECT_EQ(device("b"), "new");
  world.remove(format::model_path("a"));
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_THAT(workers_of(trial), ElementsAre("b"));
  put_model(world, "a", model_text("other"));
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_EQ(device("a"), "other") << "as it was before it went";
}

TEST(TrialModels, ADamagedOneIsNotedOnceAndLeftOut) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  put_model(world, "a", model_text("good"));
  put_model(world, "b", R"({"version": 1, "modules": 7})");
  world.clock().advance(10);
  Trial trial = must_open(world);
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_THAT(workers_of(trial), ElementsAre("a"));
  ASSERT_EQ(trial.damage_count(), 1);
  EXPECT_EQ(trial.damage().at(0).path, "tornasole/b_model.json");
  EXPECT_THAT(trial.damage().at(0).what, HasSubstr("\"modules\" of a model file is 7"));
  put_model(world, "b", model_text("mended"));
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_THAT(workers_of(trial), ElementsAre("a", "b"));
  put_model(world, "a", "{");
  world.clock().advance(10);
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_THAT(workers_of(trial), ElementsAre("b")) << "what it said before may hold no more";
  EXPECT_EQ(trial.damage_count(), 2);
}

TEST(TrialModels, OneThatChangedAMomentAgoMayStillBeCopied) {
  TrialWorld world;
  world.write_collections({"a"});
  const Bytes text = model_text("whole");
  put_model(world, "a", text.substr(0, 20));
  Trial trial = must_open(world);
  EXPECT_EQ(trial.damage_count(), 0);
  EXPECT_TRUE(trial.models().empty());
  put_model(world, "a", text);
  ASSERT_TRUE(trial.refresh().ok());
  EXPECT_THAT(workers_of(trial), ElementsAre("a"));
}

TEST(TrialModels, AtTheEndOfTheRunDamageIsDamage) {
  TrialWorld world;
  world.write_collections({"a"});
  put_model(world, "a", "{");
  world.end();
  const Trial trial = must_open(world, {.timeout_s = 0, .end_delay_s = 0});
  EXPECT_TRUE(trial.loaded_all_steps());
  EXPECT_EQ(trial.damage_count(), 1);
}

TEST(TrialModels, WhoFailsOnDamageFailsEachTime) {
  TrialWorld world;
  world.write_collections({"a"});
  Trial trial = must_open(world, {.on_damage = OnDamage::kFail, .timeout_s = 0});
  put_model(world, "a", "{");
  world.clock().advance(10);
  EXPECT_THAT(trial.refresh().error().message, HasSubstr("tornasole/a_model.json"));
  EXPECT_FALSE(trial.refresh().ok());
  EXPECT_FALSE(world.open({.on_damage = OnDamage::kFail, .timeout_s = 0}).ok());
  put_model(world, "a", model_text("mended"));
  EXPECT_TRUE(trial.refresh().ok());
}

// An index file with facts. Its values need not be there.
void put_facts(TrialWorld& world, std::int64_t step, const std::string& worker, const StepFacts& facts,
               const char* suffix = ".json") {
  format::Index index{.mode_step = step,
                      .event_file = "e",
                      .optimizer_step = facts.optimizer_step,
                      .training = facts.training,
                      .grad_enabled = facts.grad_enabled,
                      .backward_in_eval = facts.backward_in_eval,
                      .grad_scale = facts.grad_scale};
  index.tensors.push_back({"t", 0, 16, {}});
  std::string path = format::index_path(step, worker);
  path.replace(path.rfind(".json"), 5, suffix);
  world.put(path, format::encode_index(index));
}

void expect_equal(const StepFacts& facts, const StepFacts& expected, std::int64_t step) {
  EXPECT_EQ(facts.optimizer_step, expected.optimizer_step) << step;
  EXPECT_EQ(facts.training, expected.training) << step;
  EXPECT_EQ(facts.grad_enabled, expected.grad_enabled) << step;
  EXPECT_EQ(facts.backward_in_eval, expected.backward_in_eval) << step;
  EXPECT_EQ(facts.grad_scale, expected.grad_scale) << step;
}

TEST(StepFactsOfATrial, EveryCombinationComesBack) {
  constexpr std::array<std::optional<bool>, 3> kTruths = {std::nullopt, false, true};
  std::vector<StepFacts> written;
  for (const auto training : kTruths) {
    for (const auto grad_enabled : kTruths) {
      for (const auto backward_in_eval : kTruths) {
        for (const auto optimizer_step : {std::optional<std::int64_t>(), std::optional<std::int64_t>(0),
                                          std::optional(std::numeric_limits<std::int64_t>::max())}) {
          for (const auto grad_scale : {std::optional<double>(), std::optional(0.0), std::optional(65536.5)}) {
            written.push_back({optimizer_step, training, grad_enabled, backward_in_eval, grad_scale});
          }
        }
      }
    }
  }
  TrialWorld world;
  world.write_collections({"w"});
  for (std::size_t step = 0; step < written.size(); ++step) {
    put_facts(world, static_cast<std::int64_t>(step), "w", written[step]);
  }
  const Trial trial = must_open(world);
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i);
    expect_equal(trial.step_facts({step}), written[i], step);
    expect_equal(trial.step_facts({step}, "w"), written[i], step);
    expect_equal(trial.step_facts({step}, "nobody"), {}, step);
  }
  expect_equal(trial.step_facts({100'000}), {}, 100'000);
}

TEST(StepFactsOfATrial, WithoutAWorkerOfTheFirstThatHasTheStep) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  put_facts(world, 0, "b", {.optimizer_step = 5});
  Trial trial = must_open(world);
  expect_equal(trial.step_facts({0}), {.optimizer_step = 5}, 0);
  put_facts(world, 0, "a", {});
  put_facts(world, 1, "a", {.training = false});
  put_facts(world, 1, "b", {.training = true});
  ASSERT_TRUE(trial.refresh().ok());
  expect_equal(trial.step_facts({0}), {}, 0);
  expect_equal(trial.step_facts({0}, "b"), {.optimizer_step = 5}, 0);
  expect_equal(trial.step_facts({1}), {.training = false}, 1);
  expect_equal(trial.step_facts({1}, "b"), {.training = true}, 1);
}

TEST(StepFactsOfATrial, OfTwoFilesOfOneWorkerTheLastThatSaysAnything) {
  TrialWorld world;
  world.write_collections({"a"});
  put_facts(world, 0, "a", {.optimizer_step = 1}, ".csv");
  put_facts(world, 0, "a", {.optimizer_step = 2}, ".json");
  put_facts(world, 1, "a", {.optimizer_step = 3}, ".csv");
  put_facts(world, 1, "a", {}, ".json");
  const Trial trial = must_open(world);
  expect_equal(trial.step_facts({0}), {.optimizer_step = 2}, 0);
  expect_equal(trial.step_facts({1}), {.optimizer_step = 3}, 1);
}

TEST(StepFactsOfATrial, CostNothingWhereThereAreNone) {
  const auto bytes_with = [](const StepFacts& facts) {
    TrialWorld world;
    world.write_collections({"a"});
    for (std::int64_t step = 0; step < 500; ++step) put_facts(world, step, "a", facts);
    return must_open(world).index_bytes();
  };
  const std::int64_t none = bytes_with({});
  EXPECT_EQ(bytes_with({.optimizer_step = 1, .training = true}) - none, 500 * 9);
  EXPECT_EQ(bytes_with({.training = true}) - none, 500);
  EXPECT_EQ(bytes_with({.optimizer_step = 1, .grad_scale = 2}) - none, 500 * 17);
}

}  // namespace
}  // namespace tornasole::trial
