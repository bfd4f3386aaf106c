#include "tools/first_bad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tools/local_trial.h"

namespace tornasole::tools {
namespace {

using testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

MadeValue reduction(const std::string& op, const std::string& tensor, float number) {
  return {format::reduction_tensor_name(op, tensor, false), tensor_of<float>({number})};
}

std::vector<std::string> names_of(const FirstBadReport& report) {
  std::vector<std::string> names;
  for (const BadValue& bad : report.same_step) names.push_back(bad.tensor);
  return names;
}

TEST(FirstBad, AHealthyRunHasNone) {
  LocalTrial trial("healthy");
  for (std::int64_t step = 0; step < 3; ++step) {
    trial.step({.step = step,
                .values = {{"loss", tensor_of<float>({1})},
                           {"ids", tensor_of<std::int64_t>({-1})},
                           {"text", Tensor({"nan"}, Shape{1})},
                           reduction("max", "w", 3)}});
  }
  const auto report = first_bad(trial.open());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->first);
  EXPECT_FALSE(report->last_good);
  EXPECT_THAT(report->same_step, testing::IsEmpty());
  EXPECT_EQ(report->steps, 3);
  EXPECT_EQ(report->values, 9);
  EXPECT_EQ(report->reductions, 3);
}

TEST(FirstBad, TheFirstNanIsFoundWithItsPlaceAndWhatWasBefore) {
  LocalTrial trial("nan");
  trial.step({.step = 0, .values = {{"w", tensor_of<float>({1, 1, 1, 1, 1, 1}, {2, 3})}}});
  trial.step(
      {.step = 4, .values = {{"w", tensor_of<float>({1, 2, 3, 4, 5, 6}, {2, 3})}, {"x", tensor_of<float>({0})}}});
  trial.step({.step = 8,
              .values = {{"z", tensor_of<float>({0})},
                         {"w", tensor_of<float>({1, 2, 3, 4, kNan, -kInf}, {2, 3})},
                         {"x", tensor_of<float>({kInf})},
                         {"a", tensor_of<float>({7})}},
              .mode = Mode::kEval,
              .mode_step = 1});
  trial.step({.step = 9, .values = {{"w", tensor_of<float>({kNan}, {1})}, {"z", tensor_of<float>({kNan})}}});
  const auto report = first_bad(trial.open());
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_TRUE(report->first);
  const BadValue& first = *report->first;
  EXPECT_EQ(first.tensor, "w");
  EXPECT_EQ(first.global_step.number, 8);
  EXPECT_EQ(first.step, (ModeStep{Mode::kEval, 1}));
  EXPECT_EQ(first.worker, "worker_0");
  EXPECT_EQ(first.position, 4);
  EXPECT_THAT(first.index, ElementsAre(1, 1));
  EXPECT_EQ(first.kind, NonFinite::kNan);
  EXPECT_EQ(first.nan_count, 1);
  EXPECT_EQ(first.neg_inf_count, 1);
  EXPECT_EQ(first.element_count, 6);
  EXPECT_FALSE(first.reduction);
  EXPECT_THAT(names_of(*report), ElementsAre("w", "x"));
  EXPECT_EQ(report->same_step[1].kind, NonFinite::kPosInf);
  ASSERT_TRUE(report->last_good);
  EXPECT_EQ(report->last_good->global_step.number, 4);
  EXPECT_EQ(report->last_good->stats[Stat::kMax], 6);
  EXPECT_EQ(report->last_good->stats[Stat::kMean], 3.5);
  EXPECT_EQ(report->last_good->shape, (Shape{2, 3}));
  EXPECT_FALSE(report->last_good->from_reductions);
}

TEST(FirstBad, WhereOnlyReductionsAreStoredTheyCount) {
  LocalTrial trial("reductions");
  trial.step({.step = 0, .values = {reduction("max", "w", 2), reduction("l2", "w", 3)}});
  trial.step({.step = 1, .values = {reduction("max", "w", 4), reduction("l2", "w", kInf)}});
  const auto report = first_bad(trial.open());
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_TRUE(report->first);
  EXPECT_EQ(report->first->tensor, "w");
  EXPECT_EQ(report->first->global_step.number, 1);
  EXPECT_EQ(report->first->reduction, (Reduction{ReductionKind::kL2}));
  ASSERT_TRUE(report->last_good);
  EXPECT_TRUE(report->last_good->from_reductions);
  EXPECT_EQ(report->last_good->global_step.number, 0);
  EXPECT_EQ(report->last_good->reductions.at({ReductionKind::kL2}), 3);
}

TEST(FirstBad, TheValueItselfCountsBeforeItsReductions) {
  LocalTrial trial("both");
  // The sum overflowed; every element is finite.
  trial.step({.step = 0, .values = {reduction("sum", "w", kInf), {"w", tensor_of<float>({3e38F, 3e38F})}}});
  trial.step({.step = 1, .values = {reduction("sum", "w", kNan), {"w", tensor_of<float>({1, kNan})}}});
  const auto report = first_bad(trial.open());
  ASSERT_TRUE(report->first);
  EXPECT_EQ(report->first->global_step.number, 1);
  EXPECT_FALSE(report->first->reduction);
  EXPECT_EQ(report->first->position, 1);
  EXPECT_EQ(report->last_good->global_step.number, 0);
}

TEST(FirstBad, EveryFloatTypeIsLookedAt) {
  struct Case {
    DType dtype;
    Bytes bytes;
    NonFinite kind;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto* nan_bytes = reinterpret_cast<const char*>(&nan);
  const Case cases[] = {
      {DType::kFloat16, Bytes("\x00\x7C", 2), NonFinite::kPosInf},
      {DType::kFloat16, Bytes("\x01\xFC", 2), NonFinite::kNan},
      {DType::kBfloat16, Bytes("\x80\xFF", 2), NonFinite::kNegInf},
      {DType::kFloat8E5m2, Bytes("\x7C", 1), NonFinite::kPosInf},
      {DType::kFloat8E4m3fn, Bytes("\x7F", 1), NonFinite::kNan},
      {DType::kFloat64, Bytes(nan_bytes, 8), NonFinite::kNan},
      {DType::kComplex128, Bytes(8, '\0') + Bytes(nan_bytes, 8), NonFinite::kNan},
  };
  for (const Case& c : cases) {
    LocalTrial trial("dtypes");
    trial.step({.step = 0, .values = {{"w", Tensor(c.dtype, Shape{1}, c.bytes)}}});
    const auto report = first_bad(trial.open());
    ASSERT_TRUE(report.ok());
    ASSERT_TRUE(report->first) << dtype_name(c.dtype);
    EXPECT_EQ(report->first->kind, c.kind) << dtype_name(c.dtype);
    EXPECT_FALSE(report->last_good);
  }
}

TEST(FirstBad, WorkersNamesAndStepsCanBeChosen) {
  LocalTrial trial("choice");
  trial.made().collections(2, "worker_0");
  trial.made().collections(2, "worker_1");
  for (const std::string worker : {"worker_0", "worker_1"}) {
    trial.step({.step = 0,
                .values = {{"a", tensor_of<float>({worker == "worker_1" ? kNan : 1})}, {"b", tensor_of<float>({1})}},
                .worker = worker});
    trial.step({.step = 1, .values = {{"b", tensor_of<float>({kInf})}}, .worker = worker});
  }
  const Trial opened = trial.open();
  const auto found = [&](const FirstBadOptions& options) {
    const auto report = first_bad(opened, options);
    EXPECT_TRUE(report.ok());
    if (!report->first) return std::string("none");
    return fmt::format("{} {} {}", report->first->tensor, report->first->global_step.number, report->first->worker);
  };
  EXPECT_EQ(found({}), "a 0 worker_1");
  EXPECT_EQ(found({.worker = "worker_0"}), "b 1 worker_0");
  EXPECT_EQ(found({.regex = {"^b$"}}), "b 1 worker_0");
  EXPECT_EQ(found({.first_step = 1}), "b 1 worker_0");
  EXPECT_EQ(found({.regex = {"nothing"}}), "none");
  EXPECT_EQ(found({.mode = Mode::kEval}), "none");
  EXPECT_EQ(first_bad(opened, {.worker = "w"}).error().kind, ErrorKind::kInvalidWorker);
  EXPECT_EQ(first_bad(opened, {.regex = {"("}}).error().code, ErrorCode::kInvalid);
}

TEST(FirstBad, WhatCannotBeReadIsSaid) {
  LocalTrial trial("unreadable");
  trial.step({.step = 0, .values = {{"a", tensor_of<float>({1, 2, 3})}, {"b", tensor_of<float>({kNan})}}});
  trial.made().flip(format::event_path(0, "worker_0"), 40);
  const auto report = first_bad(trial.open());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->unreadable_count, 1);
  EXPECT_EQ(report->unreadable.at(0).path, "a");
  EXPECT_EQ(report->first->tensor, "b");
}

}  // namespace
}  // namespace tornasole::tools
