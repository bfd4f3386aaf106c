// What the hook writes, the trial reads: every type and form, and while it is being written.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <thread>

#include "tornasole/hook.h"
#include "tornasole/trial.h"

namespace tornasole::trial {
namespace {

namespace fs = std::filesystem;

class RoundTrip : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = (fs::path(testing::TempDir()) / fmt::format("round_trip_{}_{}", test->name(), getpid())).string();
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  Hook open_hook(HookOptions options = {}) {
    options.out_dir = directory_;
    options.save_config = {.save_interval = 1};
    options.include_regex = {"."};
    options.when_full = WhenFull::kBlock;
    auto hook = Hook::open(std::move(options));
    EXPECT_TRUE(hook.ok()) << (hook.ok() ? "" : hook.error().message);
    return std::move(*hook);
  }
  Trial open_trial(TrialOptions options = {}) {
    options.path = directory_;
    options.on_damage = OnDamage::kFail;
    options.end_delay_s = 0;
    auto trial = Trial::open(options);
    EXPECT_TRUE(trial.ok()) << (trial.ok() ? "" : trial.error().message);
    return std::move(*trial);
  }

  std::string directory_;
};

TEST_F(RoundTrip, EveryTypeAndShape) {
  const Shape kShapes[] = {Shape{}, Shape{1}, Shape{7}, Shape{2, 3}, Shape{2, 1, 4}};
  std::map<std::string, Tensor> written;
  for (const DType dtype : kNumericDTypes) {
    for (const Shape& shape : kShapes) {
      std::string bytes;
      const auto size = static_cast<std::size_t>(shape.element_count()) * dtype_size(dtype);
      // Any pattern of bits is a value, NaN payloads included; a bool is 0 or 1.
      for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(dtype == DType::kBool ? i % 2 : i * 37 + 129);
      written[fmt::format("{}{}", dtype_name(dtype), shape.to_string())] = Tensor(dtype, shape, bytes);
    }
  }
  {
    Hook hook = open_hook();
    auto step = hook.begin_step(Mode::kTrain);
    for (const auto& [name, tensor] : written) {
      step.save(name, TensorView(tensor.dtype(), tensor.bytes().data(), tensor.shape()));
    }
    const std::vector<std::string_view> texts = {"one", "", "three \xE2\x82\xAC"};
    step.save("texts", TensorView::strings(texts));
  }
  const Trial trial = open_trial({.check = true});
  EXPECT_TRUE(trial.loaded_all_steps());
  EXPECT_EQ(trial.run_status().state, RunState::kEnded);
  EXPECT_EQ(trial.damage_count(), 0);
  EXPECT_EQ(trial.tensor_names()->size(), written.size() + 1);
  for (const auto& [name, tensor] : written) {
    const auto value = trial.tensor(name, {Mode::kTrain, 0});
    ASSERT_TRUE(value.ok()) << name << ": " << value.error().message;
    EXPECT_EQ(*value, tensor) << name;
  }
  const auto texts = trial.tensor("texts", {Mode::kTrain, 0});
  ASSERT_TRUE(texts.ok());
  EXPECT_THAT(texts->texts(), testing::ElementsAre("one", "", "three \xE2\x82\xAC"));
}

TEST_F(RoundTrip, ModesReductionsAndScalars) {
  {
    Hook hook = open_hook({.reduction_config = ReductionConfig{.reductions = {"max"}, .norms = {"l2"}}});
    for (int i = 0; i < 6; ++i) {
      auto step = hook.begin_step(i % 3 == 2 ? Mode::kEval : Mode::kTrain);
      step.save("layer", std::vector<float>{3, static_cast<float>(i), -4});
      hook.save_scalar("accuracy", 0.5 * i);
    }
  }
  const Trial trial = open_trial();
  EXPECT_EQ(trial.steps(Mode::kTrain).size(), 4U);
  EXPECT_EQ(trial.steps(Mode::kEval).size(), 2U);
  const TrialTensor layer = *trial.tensor("layer");
  EXPECT_EQ(*layer.reduction_value({Mode::kTrain, 3}, {ReductionKind::kMax}), 4);
  EXPECT_EQ(layer.value({Mode::kTrain, 3}).error().details->reason, "only reductions");
  EXPECT_EQ(*trial.tensor("scalar/accuracy")->reduction_value({Mode::kEval, 1}, {ReductionKind::kMean}), 2.5);
}

TEST_F(RoundTrip, AFailedRunSaysSo) {
  {
    Hook hook = open_hook();
    hook.begin_step(Mode::kTrain).save("x", 1.0F);
    (void)hook.fail("no more memory");
  }
  const Trial trial = open_trial();
  EXPECT_EQ(trial.run_status().state, RunState::kFailed);
  EXPECT_THAT(trial.run_status().reason, testing::HasSubstr("no more memory"));
}

// The history of a reader beside a writer: a committed step is seen by every later refresh, never changes, and never
// disappears.
TEST_F(RoundTrip, ALiveReaderSeesEachCommittedStepAndNothingElse) {
  constexpr std::int64_t kSteps = 400;
  std::atomic<std::int64_t> committed = -1;
  std::atomic<bool> is_watched = false;
  std::jthread writer([&] {
    Hook hook = open_hook();
    for (std::int64_t i = 0; i < kSteps; ++i) {
      if (i == 10) is_watched.wait(false);  // however late the reader comes, it sees most of them appear
      {
        auto step = hook.begin_step(Mode::kTrain);
        step.save("number", static_cast<float>(i));
        step.save("block", std::vector<float>(64, static_cast<float>(i)));
      }
      committed = hook.report().last_committed_step;
    }
    EXPECT_TRUE(hook.close().ok());
    committed = hook.report().last_committed_step;
  });
  Trial trial = open_trial({.timeout_s = 60, .poll_s = 0.01});
  is_watched = true;
  is_watched.notify_all();
  std::size_t seen = 0;
  std::int64_t refreshes = 0;
  while (!trial.loaded_all_steps()) {
    const std::int64_t promised = committed;
    const Status refreshed = trial.refresh();
    ASSERT_TRUE(refreshed.ok()) << refreshed.error().message;
    ++refreshes;
    const auto steps = trial.steps();
    ASSERT_GE(static_cast<std::int64_t>(steps.size()), promised + 1);
    ASSERT_GE(steps.size(), seen);
    for (std::size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i].number, static_cast<std::int64_t>(i));
    for (std::size_t i = seen; i < steps.size(); ++i) {
      for (const char* name : {"number", "block"}) {
        const auto value = trial.tensor(name, steps[i]);
        ASSERT_TRUE(value.ok()) << value.error().message;
        ASSERT_EQ(value->values<float>().back(), static_cast<float>(i));
      }
    }
    seen = steps.size();
  }
  writer.join();
  EXPECT_EQ(seen, static_cast<std::size_t>(kSteps));
  EXPECT_GT(refreshes, 1);
  const auto values = trial.tensor("number")->values(Mode::kTrain);
  EXPECT_EQ(values->size(), static_cast<std::size_t>(kSteps));
  for (const auto& [step, value] : *values) EXPECT_EQ(value.values<float>()[0], static_cast<float>(step));
}

}  // namespace
}  // namespace tornasole::trial
