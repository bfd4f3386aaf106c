#include "tools/import_tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "reduce/histogram.h"
#include "tensorboard/summary_event.h"
#include "tools/import_tags.h"
#include "tornasole/trial.h"

namespace tornasole::tools {
namespace {

using tensorboard::encode_histogram;
using tensorboard::encode_scalar;
using tensorboard::EventTime;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ImportTags, WordsSayTheMode) {
  struct Case {
    const char* tag;
    const char* name;
    std::optional<Mode> mode;
  };
  const Case cases[] = {
      {"loss", "loss", {}},
      {"Loss/train", "Loss", Mode::kTrain},
      {"Loss/val", "Loss", Mode::kEval},
      {"validation/acc/top1", "acc/top1", Mode::kEval},
      {"val_loss", "loss", Mode::kEval},
      {"train_loss_step", "loss_step", Mode::kTrain},
      {"epoch_loss", "epoch_loss", {}},
      {"value", "value", {}},
      {"val_", "val_", {}},
      {"/val", "/val", {}},
      {"val/", "val/", {}},
      {"trainer/global_step", "trainer/global_step", {}},
  };
  for (const Case& c : cases) {
    const TagName split = split_tag(c.tag);
    EXPECT_EQ(split.name, c.name) << c.tag;
    EXPECT_EQ(split.mode, c.mode) << c.tag;
  }
  EXPECT_EQ(split_run("logs/fit/validation").run, "logs/fit");
  EXPECT_EQ(split_run("logs/fit/validation").mode, Mode::kEval);
  EXPECT_EQ(split_run("TRAIN").run, ".");
  EXPECT_EQ(split_run("").run, ".");
  EXPECT_EQ(split_run("version_0").run, "version_0");
}

class ImportTest : public testing::Test {
 protected:
  ImportTest() : root_(testing::TempDir() + "tornasole_import") {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~ImportTest() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::vector<Bytes>& events, std::string_view tail = {}) {
    Bytes bytes;
    tensorboard::append_record(tensorboard::encode_version(1), &bytes);
    for (const Bytes& event : events) tensorboard::append_record(event, &bytes);
    put_bytes(path, bytes + std::string(tail));
  }
  void put_bytes(const std::string& path, const Bytes& bytes) {
    const std::filesystem::path full = std::filesystem::path(source()) / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << bytes;
  }
  std::string source() const { return root_ + "/logs"; }
  std::string output() const { return root_ + "/trial"; }
  Result<ImportReport> run(const std::string& name = {}) {
    return import_tensorboard({.source = source(), .run = name, .path = output()});
  }
  Trial open() {
    auto trial = Trial::open({.path = output(), .timeout_s = 0, .end_delay_s = 0});
    EXPECT_TRUE(trial.ok()) << trial.error().message;
    EXPECT_TRUE(trial->refresh().ok());
    EXPECT_TRUE(trial->loaded_all_steps());
    return std::move(*trial);
  }
  static double number(const Trial& trial, const char* name, ModeStep step) {
    const auto tensor = trial.tensor(name);
    EXPECT_TRUE(tensor.ok()) << name;
    const auto value = tensor->value(step);
    EXPECT_TRUE(value.ok()) << name << " " << step.number;
    return value.ok() ? value->values<double>()[0] : std::nan("");
  }

  const std::string root_;
};

TEST_F(ImportTest, DirectoriesBecomeModesAndLossesAreFound) {
  put("train/events.out.tfevents.1.h",
      {encode_scalar({5, 0}, "epoch_loss", 2), encode_scalar({6, 1}, "epoch_loss", 1)});
  put("validation/events.out.tfevents.1.h",
      {encode_scalar({5, 0}, "epoch_loss", 3), encode_scalar({5, 0}, "epoch_accuracy", 0.5F)});
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->files, 2);
  EXPECT_EQ(report->steps, 3);
  EXPECT_EQ(report->curves, 3);
  EXPECT_EQ(report->values, 4);
  const Trial trial = open();
  EXPECT_EQ(number(trial, "epoch_loss", {Mode::kTrain, 0}), 2);
  EXPECT_EQ(number(trial, "epoch_loss", {Mode::kTrain, 1}), 1);
  EXPECT_EQ(number(trial, "epoch_loss", {Mode::kEval, 0}), 3);
  EXPECT_THAT(*trial.tensor_names({.collection = "losses"}), ElementsAre("epoch_loss"));
  EXPECT_THAT(*trial.tensor_names({.collection = "metrics"}), ElementsAre("epoch_accuracy"));
  EXPECT_EQ(trial.global_step({Mode::kEval, 0})->number, 1) << "the steps of both are numbered, TRAIN first";
}

TEST_F(ImportTest, OneModeKeepsItsStepNumbersAndTheLastPointCounts) {
  put("events.out.tfevents.1", {encode_scalar({5, 10}, "loss", 2), encode_scalar({6, 20}, "loss", 1)});
  put("events.out.tfevents.2", {encode_scalar({7, 20}, "loss", 5)});
  ASSERT_TRUE(run().ok());
  const Trial trial = open();
  EXPECT_EQ(number(trial, "loss", {Mode::kGlobal, 10}), 2);
  EXPECT_EQ(number(trial, "loss", {Mode::kGlobal, 20}), 5);
  EXPECT_EQ(trial.mode_step({20})->mode, Mode::kTrain);
}

TEST_F(ImportTest, TagsOfOneDirectorySayTheMode) {
  put("tfevents",
      {encode_scalar({5, 1}, "loss", 2), encode_scalar({5, 1}, "val_loss", 3), encode_scalar({5, 1}, "train_loss", 4)});
  ASSERT_TRUE(run().ok());
  const Trial trial = open();
  EXPECT_EQ(number(trial, "loss", {Mode::kTrain, 1}), 2);
  EXPECT_EQ(number(trial, "loss", {Mode::kEval, 1}), 3);
  EXPECT_EQ(number(trial, "train_loss", {Mode::kTrain, 1}), 4) << "loss is taken";
}

TEST_F(ImportTest, HistogramsAreTablesAndReductions) {
  const std::vector<double> values = {-1, 2, 3};
  const auto histogram = reduce::tensorboard_histogram(TensorView::of(values));
  put("tfevents", {encode_histogram({5, 7}, "w", *histogram)});
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->histograms, 1);
  const Trial trial = open();
  const auto w = trial.tensor("w");
  const ModeStep step{Mode::kTrain, 7};
  EXPECT_EQ(*w->reduction_value(step, {ReductionKind::kMin, false}), -1);
  EXPECT_EQ(*w->reduction_value(step, {ReductionKind::kMax, false}), 3);
  EXPECT_DOUBLE_EQ(*w->reduction_value(step, {ReductionKind::kMean, false}), 4.0 / 3);
  EXPECT_DOUBLE_EQ(*w->reduction_value(step, {ReductionKind::kL2, false}), std::sqrt(14.0));
  EXPECT_NEAR(*w->reduction_value(step, {ReductionKind::kStd, false}), std::sqrt(14.0 / 3 - 16.0 / 9), 1e-12);
  const auto table = trial.tensor("w/histogram")->value(step);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->shape()[1], 3);
  double count = 0;
  for (std::int64_t row = 0; row < table->shape()[0]; ++row)
    count += table->values<double>()[static_cast<std::size_t>(3 * row + 2)];
  EXPECT_EQ(count, 3);
}

TEST_F(ImportTest, WhatIsNotFiniteStays) {
  put("tfevents", {encode_scalar({5, 0}, "loss", std::nanf("")),
                   encode_scalar({5, 1}, "loss", -std::numeric_limits<float>::infinity())});
  ASSERT_TRUE(run().ok());
  const Trial trial = open();
  EXPECT_TRUE(std::isnan(number(trial, "loss", {Mode::kTrain, 0})));
  EXPECT_EQ(number(trial, "loss", {Mode::kTrain, 1}), -std::numeric_limits<double>::infinity());
}

TEST_F(ImportTest, AFileThatStillGrowsIsReadUpToThere) {
  put("tfevents", {encode_scalar({5, 0}, "loss", 1)}, "\x20\x00\x00");
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->cut, 1);
  EXPECT_EQ(report->values, 1);
}

TEST_F(ImportTest, OtherKindsAreCounted) {
  const std::string text = "hello";
  put("tfevents", {encode_scalar({5, 0}, "loss", 1), tensorboard::encode_text({5, 0}, "t", std::span(&text, 1)),
                   encode_scalar({5, -1}, "loss", 1)});
  EXPECT_EQ(run()->left_out, 2);
}

TEST_F(ImportTest, BadInputIsNamed) {
  const auto refusal = [&](const std::string& name = {}) {
    const auto report = run(name);
    EXPECT_FALSE(report.ok());
    return report.ok() ? std::string() : report.error().message;
  };
  EXPECT_THAT(refusal(), HasSubstr("logs")) << "there is no such directory";
  put_bytes("notes.txt", "hello");
  EXPECT_THAT(refusal(), HasSubstr("no event files"));
  put("a/tfevents", {encode_scalar({5, 0}, "loss", 1)});
  put("b/tfevents", {encode_scalar({5, 0}, "loss", 2)});
  EXPECT_THAT(refusal(), HasSubstr("2 runs: a, b"));
  EXPECT_THAT(refusal("c"), HasSubstr("no run 'c'"));
  put_bytes("b/tfevents2", "this is no record at all");
  EXPECT_THAT(refusal("b"), HasSubstr("b/tfevents2: record at 0"));
  Bytes bad;
  tensorboard::append_record("\x2a\x7f", &bad);
  put_bytes("b/tfevents2", bad);
  EXPECT_THAT(refusal("b"), HasSubstr("b/tfevents2: record at 0: the event is not a protobuf message"));
  ASSERT_TRUE(run("a").ok());
  EXPECT_THAT(refusal("a"), HasSubstr("is no empty directory"));
}

}  // namespace
}  // namespace tornasole::tools
