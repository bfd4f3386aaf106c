#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <map>

#include "store/local/local_store.h"
#include "tensorboard/summary_file.h"
#include "tools/export_trial.h"
#include "tools/local_trial.h"

namespace tornasole::tools {
namespace {

using tensorboard::SummaryEvent;
using tensorboard::SummaryValue;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// (run, tag, step) -> value, of every file below a directory.
using Shown = std::map<std::tuple<std::string, std::string, std::int64_t>, SummaryValue>;

class ExportTensorboardTest : public testing::Test {
 protected:
  ExportTensorboardTest() : trial_("export_tensorboard"), out_(testing::TempDir() + "tornasole_boards") {
    std::filesystem::remove_all(out_);
  }
  ~ExportTensorboardTest() override { std::filesystem::remove_all(out_); }

  ExportReport run(ExportOptions options = {}) {
    options.format = ExportFormat::kTensorboard;
    options.path = out_;
    auto report = export_trial(trial_.open(), options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : ExportReport{};
  }
  Shown shown() const {
    Shown values;
    const auto store = store::open_local_store(out_, {.read_only = true});
    const auto entries = (*store)->list("", true);
    for (const store::Entry& entry : *entries) {
      const std::string folder = entry.path.substr(0, entry.path.rfind('/'));
      std::int64_t events = 0;
      const auto rest = tensorboard::read_file(**store, entry.path, [&](const SummaryEvent& event) {
        EXPECT_EQ(event.file_version.empty(), events++ != 0);
        EXPECT_EQ(event.wall_time, 1700000000.5);
        for (const SummaryValue& value : event.values) values[{folder, value.tag, event.step}] = value;
        return Status();
      });
      EXPECT_TRUE(rest.ok() && *rest == 0) << entry.path;
    }
    return values;
  }
  std::vector<std::string> tags(const Shown& values) const {
    std::vector<std::string> tags;
    for (const auto& [key, value] : values)
      tags.push_back(fmt::format("{} {} {}", std::get<0>(key), std::get<1>(key), std::get<2>(key)));
    return tags;
  }

  LocalTrial trial_;
  const std::string out_;
};

TEST_F(ExportTensorboardTest, NumbersBecomeCurvesAndTensorsHistograms) {
  trial_.step({.step = 3,
               .values = {{"loss", tensor_of<float>({0.5F})},
                          {format::reduction_tensor_name("l2", "w:0", false), tensor_of<double>({2})},
                          {"w:0", tensor_of<float>({1, 2, 3})},
                          {"flags", Tensor(DType::kBool, Shape{3}, Bytes("\1\0\1", 3))}}});
  trial_.step({.step = 4, .values = {{"loss", tensor_of<float>({0.25F})}}, .mode = Mode::kEval});
  const ExportReport report = run();
  EXPECT_EQ(report.files, 2);
  EXPECT_EQ(report.values, 4);
  EXPECT_EQ(report.reductions, 1);
  const Shown values = shown();
  EXPECT_THAT(tags(values),
              ElementsAre("EVAL loss 4", "TRAIN flags 3", "TRAIN loss 3", "TRAIN w_0 3", "TRAIN w_0/l2 3"));
  EXPECT_EQ(values.at({"TRAIN", "loss", 3}).simple_value, 0.5F);
  EXPECT_EQ(values.at({"TRAIN", "w_0/l2", 3}).simple_value, 2.0F);
  EXPECT_EQ(values.at({"TRAIN", "w_0", 3}).histogram->num, 3);
  EXPECT_EQ(values.at({"TRAIN", "flags", 3}).histogram->sum, 2);
}

TEST_F(ExportTensorboardTest, NothingThatIsNotFiniteGoesUnseen) {
  trial_.step({.step = 0, .values = {{"w", tensor_of<float>({1, 2})}, {"loss", tensor_of<float>({kNan})}}});
  trial_.step({.step = 1, .values = {{"w", tensor_of<float>({1, kNan, kInfinity, -kInfinity})}}});
  trial_.step({.step = 2, .values = {{"w", tensor_of<float>({kNan, kNan})}}});
  trial_.step({.step = 3, .values = {{"w", tensor_of<float>({1, 2})}}});
  EXPECT_TRUE(run().skipped.empty());
  const Shown values = shown();
  EXPECT_TRUE(std::isnan(*values.at({"TRAIN", "loss", 0}).simple_value));
  EXPECT_FALSE(values.contains({"TRAIN", "w/nan", 0})) << "no curve before there is something to show";
  EXPECT_EQ(values.at({"TRAIN", "w/nan", 1}).simple_value, 1.0F);
  EXPECT_EQ(values.at({"TRAIN", "w/inf", 1}).simple_value, 2.0F);
  EXPECT_EQ(values.at({"TRAIN", "w", 1}).histogram->max, 1);
  EXPECT_FALSE(values.contains({"TRAIN", "w", 2}));
  EXPECT_EQ(values.at({"TRAIN", "w/nan", 2}).simple_value, 2.0F);
  EXPECT_EQ(values.at({"TRAIN", "w/nan", 3}).simple_value, 0.0F);
}

TEST_F(ExportTensorboardTest, WhatAFloatCannotHoldIsADouble) {
  trial_.step({.step = 0, .values = {{"big", tensor_of<double>({1e300})}, {"tiny", tensor_of<double>({1e-300})}}});
  run();
  const Shown values = shown();
  EXPECT_EQ(values.at({"TRAIN", "big", 0}).tensor->numbers, std::vector<double>{1e300});
  EXPECT_EQ(values.at({"TRAIN", "tiny", 0}).tensor->numbers, std::vector<double>{1e-300});
  EXPECT_EQ(values.at({"TRAIN", "tiny", 0}).plugin, "scalars");
}

TEST_F(ExportTensorboardTest, ComplexNumbersAreLeftOutAndCounted) {
  trial_.step({.step = 0, .values = {{"c", tensor_of<std::complex<float>>({{1, 2}})}, {"x", tensor_of<float>({1})}}});
  const ExportReport report = run();
  EXPECT_EQ(report.skipped.count, 1);
  EXPECT_THAT(tags(shown()), ElementsAre("TRAIN x 0"));
}

TEST_F(ExportTensorboardTest, TreesAndTextsAndHyperparametersAreShownAsSuch) {
  trial_.step({.step = 0,
               .values = {{"hyperparameters/eta", tensor_of<double>({0.1})},
                          {"hyperparameters/objective", Tensor({"binary"}, Shape{1})},
                          {"trees/Node", tensor_of<std::int64_t>({0, 1})},
                          {"trees/Feature", Tensor({"f|0", "Leaf"}, Shape{2})},
                          {"names", Tensor({"a", "b"}, Shape{2})}}});
  trial_.step({.step = 1, .values = {{"trees/Node", tensor_of<std::int64_t>({7})}}});
  run();
  const Shown values = shown();
  const SummaryValue& trees = values.at({"TRAIN", "trees", 0});
  EXPECT_EQ(trees.plugin, "text");
  EXPECT_EQ(trees.tensor->texts.at(0), "| Node | Feature |\n|---|---|\n| 0 | f\\|0 |\n| 1 | Leaf |");
  EXPECT_THAT(values.at({"TRAIN", "trees", 1}).tensor->texts.at(0), HasSubstr("| 7 |"));
  EXPECT_THAT(values.at({"TRAIN", "names", 0}).tensor->texts, ElementsAre("a", "b"));
  const SummaryValue& start = values.at({"TRAIN", "_hparams_/session_start_info", 0});
  EXPECT_EQ(start.plugin, "hparams");
  EXPECT_THAT(start.plugin_content, HasSubstr("objective"));
  EXPECT_THAT(start.plugin_content, HasSubstr("binary"));
}

TEST_F(ExportTensorboardTest, SmallTablesArePicturesIfAsked) {
  trial_.step({.step = 0,
               .values = {{"small", tensor_of<float>({1, 2, kNan, 4}, {2, 2})},
                          {"flat", tensor_of<float>({1, 2})},
                          {"large", tensor_of<float>(std::vector<float>(600), {300, 2})}}});
  run({.images = true});
  const Shown values = shown();
  EXPECT_THAT(tags(values), ElementsAre("TRAIN flat 0", "TRAIN large 0", "TRAIN small 0", "TRAIN small/image 0",
                                        "TRAIN small/inf 0", "TRAIN small/nan 0"));
  EXPECT_TRUE(values.at({"TRAIN", "small/image", 0}).has_image);
}

TEST_F(ExportTensorboardTest, WorkersAreRunsOfTheirOwn) {
  for (const char* worker : {"worker_0", "worker_1"}) trial_.made().collections(2, worker);
  for (const char* worker : {"worker_0", "worker_1"}) {
    trial_.step({.step = 0, .values = {{"x", tensor_of<float>({1})}}, .worker = worker});
  }
  run();
  EXPECT_THAT(tags(shown()), ElementsAre("worker_0/TRAIN x 0", "worker_1/TRAIN x 0"));
}

TEST_F(ExportTensorboardTest, ADirectoryIsAddedToOnlyIfAsked) {
  trial_.step({.step = 0, .values = {{"x", tensor_of<float>({1})}}});
  trial_.step({.step = 1, .values = {{"x", tensor_of<float>({2})}}});
  run({.end_step = 1});
  const auto refused =
      export_trial(trial_.open(), {.format = ExportFormat::kTensorboard, .path = out_, .first_step = 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(out_));
  run({.first_step = 1, .append = true});
  EXPECT_THAT(tags(shown()), ElementsAre("TRAIN x 0", "TRAIN x 1"));
}

TEST_F(ExportTensorboardTest, NotesAreTexts) {
  trial_.step({.step = 5, .values = {{"x", tensor_of<float>({1})}}});
  run({.notes = {{.tag = "check/Rule", .global_step = 5, .markdown = "**bad**"}}});
  EXPECT_THAT(shown().at({"TRAIN", "check/Rule", 5}).tensor->texts, ElementsAre("**bad**"));
}

}  // namespace
}  // namespace tornasole::tools
