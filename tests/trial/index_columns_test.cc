// The index in memory: how small it is, and that threads change nothing.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "trial/index_loader.h"
#include "trial_world.h"

namespace tornasole::trial {
namespace {

TEST(IndexColumns, AtMostTwentyFourBytesForAValue) {
  constexpr std::int64_t kSteps = 5000;
  constexpr std::int64_t kTensors = 50;
  TrialWorld world;
  world.write_collections({"worker_0"});
  std::vector<WrittenTensor> tensors;
  for (int i = 0; i < kTensors; ++i) tensors.push_back({fmt::format("network/layer_{}/weight", i), {1}});
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const EncodedFiles encoded = encode_files({.step = step, .mode_step = train(step), .tensors = tensors});
    world.put(format::index_path(step, "worker_0"), encoded.index);
  }
  const Trial trial = must_open(world);
  ASSERT_EQ(trial.steps().size(), static_cast<std::size_t>(kSteps));
  EXPECT_LE(static_cast<double>(trial.index_bytes()) / (kSteps * kTensors), 24);
  EXPECT_GE(trial.index_bytes(), kSteps * kTensors * 16);
}

TEST(IndexColumns, NoMoreForStepsThatAllHaveOtherNames) {
  constexpr std::int64_t kSteps = 500;
  constexpr std::int64_t kTensors = 400;
  TrialWorld world;
  world.write_collections({"worker_0"});
  std::mt19937 random(1);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    format::Index index{.event_file = format::event_path(step, "worker_0")};
    for (int i = 0; i < 1000; ++i) {
      if (random() % 1000 < kTensors) index.tensors.push_back({fmt::format("tensor_{}", i), 0, 100, 7});
    }
    world.put(format::index_path(step, "worker_0"), format::encode_index(index));
  }
  const Trial trial = must_open(world);
  EXPECT_LE(static_cast<double>(trial.index_bytes()) / (kSteps * kTensors), 24);
}

// Files that differ in names, order, shapes, modes, workers and damage.
std::vector<IndexFile> write_random_files(TrialWorld& world, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<IndexFile> files;
  for (std::int64_t step = 0; step < 120; ++step) {
    for (const char* worker : {"a", "b"}) {
      WrittenFile file{.step = step, .worker = worker, .tensors = {}};
      if (random() % 3 != 0) file.mode_step = random() % 2 == 0 ? train(step / 2) : eval(step);
      for (unsigned i = 0; i < 3 + random() % 6; ++i) {
        const std::string name = fmt::format("t{}", random() % 12);
        const unsigned form = random() % 4;
        if (form == 0) {
          file.shapes.push_back({name, fmt::format("o{}", random() % 3), {static_cast<std::int64_t>(random() % 5), 2}});
        } else {
          file.tensors.push_back(
              {form == 1 ? "smdebug/reductions/max/" + name : name, {static_cast<float>(random() % 100)}});
        }
      }
      world.write(file);
      if (random() % 20 == 0) world.put(format::index_path(step, worker), "damaged");
      files.push_back({.path = format::index_path(step, worker), .step = step, .worker_file_name = worker});
    }
  }
  return files;
}

std::string describe(const Trial& trial) {
  std::string text = fmt::format("{} {} ", trial.last_complete_step(), trial.damage_count());
  const auto names = trial.tensor_names();
  for (const std::string& name : *names) {
    const TrialTensor tensor = *trial.tensor(name);
    text += fmt::format("\n{} {}", name, tensor.original_name());
    for (const Mode mode : kAllModes) {
      for (const ModeStep step : tensor.steps(mode, StepFilter::kIncludingIncomplete)) {
        const auto workers = tensor.workers(step);
        for (const std::string& worker : *workers) {
          const auto value = tensor.value(step, worker);
          const auto shape = tensor.shape(step, worker);
          const auto reduced = tensor.reduction_values(step, worker);
          text += fmt::format(" {}.{}.{}:{}/{}/{}", mode_name(step.mode), step.number, worker,
                              value.ok() ? fmt::format("{}", value->values<float>()[0]) : "-",
                              shape.ok() ? shape->to_string() : "-", reduced->size());
        }
      }
    }
  }
  return text;
}

TEST(IndexColumns, AnyNumberOfThreadsGivesTheSame) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    TrialWorld world;
    world.write_collections({"a", "b"});
    write_random_files(world, seed);
    world.clock().advance(10);
    std::vector<std::string> described;
    for (const unsigned threads : {1U, 2U, 7U}) {
      TrialDependencies dependencies = world.dependencies();
      dependencies.threads = threads;
      const auto trial = open_trial({.path = "/x", .timeout_s = 0},
                                    config::Environment(std::map<std::string, std::string>()), std::move(dependencies));
      ASSERT_TRUE(trial.ok());
      described.push_back(describe(*trial));
    }
    EXPECT_EQ(described[0], described[1]);
    EXPECT_EQ(described[0], described[2]);
    EXPECT_GT(described[0].size(), 5000U);
  }
}

TEST(IndexColumns, OneFileAtATimeGivesTheSameAsAllAtOnce) {
  TrialWorld whole;
  whole.write_collections({"a", "b"});
  const auto files = write_random_files(whole, 11);
  TrialWorld growing;
  growing.write_collections({"a", "b"});
  Trial trial = must_open(growing);
  for (const IndexFile& file : files) {
    for (const std::string& path : {format::event_path(file.step, file.worker_file_name), file.path}) {
      if (auto bytes = whole.store().read_all(path, 1 << 20U); bytes.ok()) growing.put(path, *bytes);
    }
    growing.clock().advance(10);
    ASSERT_TRUE(trial.refresh().ok());
  }
  whole.clock().advance(10);
  EXPECT_EQ(describe(trial), describe(must_open(whole)));
}

TEST(IndexColumns, NamesOfADamagedFileAreNotKnown) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .tensors = {{"known"}}});
  Bytes text = encode_files({.step = 1, .tensors = {{"unknown"}}}).index;
  text[text.size() - 2] = text[text.size() - 2] == '1' ? '2' : '1';  // of the checksum
  world.put(format::index_path(1, "worker_0"), text);
  world.clock().advance(10);
  const Trial trial = must_open(world);
  EXPECT_EQ(*trial.tensor_names(), std::vector<std::string>{"known"});
  EXPECT_FALSE(trial.has_tensor("unknown"));
  EXPECT_EQ(trial.damage_count(), 1);
}

TEST(IndexColumns, NamesAreSortedByTheirBytes) {
  std::mt19937 random(3);
  for (const char* shared : {"", "a/long/beginning/of/all/names/"}) {
    std::set<std::string> expected;
    for (int i = 0; i < 2000; ++i) {
      std::string name = shared;
      for (auto length = random() % 20; length > 0; --length) {
        constexpr std::string_view kLetters("ab\x01\0\x7f", 5);
        name += kLetters[random() % kLetters.size()];
      }
      expected.insert(random() % 5 == 0 ? name + "\u00e9" : name);
    }
    expected.erase("");
    std::vector<std::string> shuffled(expected.begin(), expected.end());
    std::ranges::shuffle(shuffled, random);
    format::Index index{.event_file = "e"};
    for (const std::string& name : shuffled) index.tensors.push_back({name, 0, 16, {}});
    TrialWorld world;
    world.write_collections({"worker_0"});
    world.put(format::index_path(0, "worker_0"), format::encode_index(index));
    EXPECT_THAT(*must_open(world).tensor_names(), testing::ElementsAreArray(expected));
  }
}

TEST(IndexColumns, ManyWorkersOfOneStep) {
  TrialWorld world;
  std::vector<std::string> workers;
  for (int i = 0; i < 300; ++i) workers.push_back(fmt::format("worker_{}", i));
  world.write_collections(workers);
  world.write_steps(0, 1, workers);
  const Trial trial = must_open(world);
  EXPECT_EQ(trial.last_complete_step(), 1);
  EXPECT_EQ(trial.workers_at({1}).size(), 300U);
  EXPECT_EQ(trial.tensor("a")->workers(global(0))->size(), 300U);
}

}  // namespace
}  // namespace tornasole::trial
