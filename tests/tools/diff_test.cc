#include "tools/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/diff_html.h"
#include "tools/diff_table.h"
#include "tools/local_trial.h"

namespace tornasole::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

MadeStep sample(std::int64_t step, float number) {
  return {.step = step,
          .values = {{"loss", tensor_of<float>({number})}, {"w", tensor_of<float>({1, number, kNan, 4}, {2, 2})}}};
}

DiffReport diff_of(LocalTrial& a, LocalTrial& b, const DiffOptions& options = {}) {
  auto report = diff(a.open(), b.open(), options);
  EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
  return std::move(*report);
}

std::vector<std::string> mismatches_of(const DiffReport& report) {
  std::vector<std::string> texts;
  for (const Mismatch& mismatch : report.mismatches) {
    texts.push_back(fmt::format("{} {} {}", mismatch_kind_name(mismatch.kind), mismatch.tensor, mismatch.step_count));
  }
  return texts;
}

TEST(Diff, EqualTrialsAreEqualNanIncluded) {
  LocalTrial a("equal_a");
  LocalTrial b("equal_b");
  for (std::int64_t step = 0; step < 5; ++step) {
    a.step(sample(step, 2));
    b.step(sample(step, 2));
  }
  const DiffReport report = diff_of(a, b);
  EXPECT_TRUE(report.is_equal);
  EXPECT_FALSE(report.first);
  EXPECT_EQ(report.values_compared, 10);
  EXPECT_EQ(report.steps_compared, 5);
  ASSERT_EQ(report.tensors.size(), 2U);
  EXPECT_EQ(report.tensors[1].tensor, "w");
  EXPECT_EQ(report.tensors[1].max_abs, 0);
  EXPECT_EQ(report.tensors[1].points.size(), 5U);
}

TEST(Diff, TheEarliestDifferenceIsTold) {
  LocalTrial a("value_a");
  LocalTrial b("value_b");
  for (std::int64_t step = 0; step < 5; ++step) {
    a.step(sample(step, 2));
    MadeStep other = sample(step, 2);
    if (step >= 2) other.values[1].tensor = tensor_of<float>({1, 2, kNan, static_cast<float>(4 + step)}, {2, 2});
    if (step >= 3) other.values[0].tensor = tensor_of<float>({9});
    b.step(other);
  }
  const DiffReport report = diff_of(a, b);
  EXPECT_FALSE(report.is_equal);
  ASSERT_TRUE(report.first);
  EXPECT_EQ(report.first->tensor, "w");
  EXPECT_EQ(report.first->global_step_a.number, 2);
  EXPECT_EQ(report.first->step, (ModeStep{Mode::kTrain, 2}));
  EXPECT_EQ(report.first->position, 3);
  EXPECT_THAT(report.first->index, ElementsAre(1, 1));
  EXPECT_EQ(report.first->a, "4");
  EXPECT_EQ(report.first->b, "6");
  EXPECT_EQ(report.first->abs, 2);
  ASSERT_EQ(report.tensors.size(), 2U);
  const TensorDiff& loss = report.tensors[0];
  EXPECT_EQ(loss.first_step, (ModeStep{Mode::kTrain, 3}));
  EXPECT_EQ(loss.values_different, 2);
  EXPECT_EQ(loss.max_abs, 7);
  const TensorDiff& w = report.tensors[1];
  EXPECT_EQ(w.values_different, 3);
  EXPECT_EQ(w.elements_different, 3);
  EXPECT_EQ(w.max_abs, 4);
  EXPECT_EQ(w.max_rel, 0.5);
  EXPECT_EQ(w.points[4].max_abs, 4);
}

TEST(Diff, TolerancesHoldByPatternTheFirstOneCounts) {
  LocalTrial a("rule_a");
  LocalTrial b("rule_b");
  a.step({.step = 0, .values = {{"gradient/w", tensor_of<float>({1})}, {"loss", tensor_of<float>({1})}}});
  b.step({.step = 0, .values = {{"gradient/w", tensor_of<float>({1.25})}, {"loss", tensor_of<float>({1.25})}}});
  const auto differing = [&](const DiffOptions& options) {
    std::string names;
    for (const TensorDiff& row : diff_of(a, b, options).tensors) names += row.differs() ? row.tensor + ";" : "";
    return names;
  };
  EXPECT_EQ(differing({}), "gradient/w;loss;");
  EXPECT_EQ(differing({.tolerance = {.abs = 0.25}}), "");
  EXPECT_EQ(differing({.rules = {{"^gradient/", {.abs = 0.5}}}}), "loss;");
  EXPECT_EQ(differing({.tolerance = {.abs = 1}, .rules = {{"^gradient/", {}}}}), "gradient/w;");
  EXPECT_EQ(differing({.rules = {{"w", {.rel = 0.1}}, {"gradient", {.rel = 1}}}}), "gradient/w;loss;");
  EXPECT_EQ(differing({.regex = {"loss"}}), "loss;");
  EXPECT_EQ(diff(a.open(), b.open(), {.rules = {{"(", {}}}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(diff(a.open(), b.open(), {.regex = {"("}}).error().code, ErrorCode::kInvalid);
}

TEST(Diff, APatternThatTakesTooManyStepsIsAnErrorThatNamesIt) {
  LocalTrial a("slow_pattern_a");
  LocalTrial b("slow_pattern_b");
  const std::string name = std::string(300, 'a') + "!";
  for (LocalTrial* trial : {&a, &b}) trial->step({.step = 0, .values = {{name, tensor_of<float>({1})}}});
  const DiffOptions kOptions[] = {{.rules = {{"(a+)+$", {}}}}, {.regex = {"(a+)+$"}}};
  for (const DiffOptions& options : kOptions) {
    const auto report = diff(a.open(), b.open(), options);
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().message, AllOf(HasSubstr("(a+)+$"), HasSubstr("aaaa"), HasSubstr("too many steps")));
  }
}

TEST(Diff, WhatOnlyOneHasIsListed) {
  LocalTrial a("missing_a");
  LocalTrial b("missing_b");
  a.step({.step = 0, .values = {{"both", tensor_of<float>({1})}, {"a only", tensor_of<float>({1})}}});
  b.step({.step = 0, .values = {{"both", tensor_of<float>({1})}, {"b only", tensor_of<float>({1})}}});
  a.step({.step = 1, .values = {{"both", tensor_of<float>({1})}}});
  b.step({.step = 2, .values = {{"both", tensor_of<float>({1})}}});
  b.step({.step = 3, .values = {{"both", tensor_of<float>({1})}}});
  const DiffReport report = diff_of(a, b);
  EXPECT_FALSE(report.is_equal);
  EXPECT_FALSE(report.first);
  EXPECT_THAT(mismatches_of(report), ElementsAre("only in A a only 0", "only in B b only 0", "steps only in A both 1",
                                                 "steps only in B both 2"));
  EXPECT_EQ(report.mismatch_count, 4);
  const DiffReport lenient = diff_of(a, b, {.ignore_missing = true});
  EXPECT_TRUE(lenient.is_equal);
  EXPECT_EQ(lenient.mismatch_count, 4);
}

TEST(Diff, ShapesAndTypesThatDifferAreListedWithBoth) {
  LocalTrial a("form_a");
  LocalTrial b("form_b");
  a.step({.step = 0,
          .values = {{"shape", tensor_of<float>({1, 2}, {2, 1})},
                     {"scalar", tensor_of<float>({1}, {})},
                     {"type", tensor_of<float>({1})}}});
  b.step({.step = 0,
          .values = {{"shape", tensor_of<float>({1, 2}, {1, 2})},
                     {"scalar", tensor_of<float>({1}, {1})},
                     {"type", tensor_of<double>({1})}}});
  const DiffReport report = diff_of(a, b);
  EXPECT_THAT(mismatches_of(report), ElementsAre("shape shape 1", "dtype type 1"));
  EXPECT_EQ(report.mismatches[0].what, "[2, 1] in A, [1, 2] in B");
  EXPECT_EQ(report.mismatches[1].what, "float32 in A, float64 in B");
  EXPECT_EQ(report.first->tensor, "shape");
  EXPECT_EQ(report.first->position, -1);
  EXPECT_FALSE(report.is_equal);
  EXPECT_TRUE(diff_of(a, b, {.regex = {"type", "scalar"}, .ignore_dtype = true}).is_equal);
}

TEST(Diff, StepsAreAlignedByModeWhateverTheirGlobalNumber) {
  LocalTrial a("mode_a");
  LocalTrial b("mode_b");
  a.step({.step = 10, .values = {{"x", tensor_of<float>({1})}}, .mode = Mode::kTrain, .mode_step = 5});
  a.step({.step = 11, .values = {{"x", tensor_of<float>({2})}}, .mode = Mode::kEval, .mode_step = 5});
  b.step({.step = 20, .values = {{"x", tensor_of<float>({1})}}, .mode = Mode::kTrain, .mode_step = 5});
  b.step({.step = 21, .values = {{"x", tensor_of<float>({3})}}, .mode = Mode::kEval, .mode_step = 5});
  const DiffReport report = diff_of(a, b);
  ASSERT_TRUE(report.first);
  EXPECT_EQ(report.first->step, (ModeStep{Mode::kEval, 5}));
  EXPECT_EQ(report.first->global_step_a.number, 11);
  EXPECT_EQ(report.first->global_step_b.number, 21);
  EXPECT_EQ(report.values_compared, 2);
  EXPECT_TRUE(report.mismatches.empty());
  EXPECT_TRUE(diff_of(a, b, {.mode = Mode::kTrain}).is_equal);
  EXPECT_EQ(diff_of(a, b, {.align_global_steps = true}).values_compared, 0);
  EXPECT_EQ(diff_of(a, b, {.first_step = 10, .end_step = 11}).values_compared, 1);
}

TEST(Diff, StoredReductionsAreComparedWhereAValueIsMissing) {
  const auto name = [](const char* op) { return format::reduction_tensor_name(op, "w", false); };
  LocalTrial a("reduced_a");
  LocalTrial b("reduced_b");
  // Step 0: the value in both, so reductions are left alone. Step 1: only in A. Step 2: nothing in common.
  a.step({.step = 0, .values = {{name("min"), tensor_of<float>({1})}, {"w", tensor_of<float>({1})}}});
  b.step({.step = 0, .values = {{name("min"), tensor_of<float>({2})}, {"w", tensor_of<float>({1})}}});
  a.step({.step = 1, .values = {{name("min"), tensor_of<float>({1})}, {"w", tensor_of<float>({1})}}});
  b.step({.step = 1, .values = {{name("min"), tensor_of<float>({3})}}});
  a.step({.step = 2, .values = {{"w", tensor_of<float>({1})}}});
  b.step({.step = 2, .values = {{name("max"), tensor_of<float>({3})}}});
  const DiffReport report = diff_of(a, b);
  ASSERT_TRUE(report.first);
  EXPECT_EQ(report.first->reduction, (Reduction{ReductionKind::kMin}));
  EXPECT_EQ(report.first->global_step_a.number, 1);
  EXPECT_EQ(report.values_compared, 1);
  EXPECT_EQ(report.reductions_compared, 1);
  EXPECT_THAT(mismatches_of(report), ElementsAre("form w 1"));
}

TEST(Diff, WorkersAreAlignedByNameUnlessThereIsJustOne) {
  LocalTrial a("workers_a");
  LocalTrial b("workers_b");
  a.step({.step = 0, .values = {{"x", tensor_of<float>({1})}}});
  std::filesystem::remove(b.path() + "/" + format::collections_path("worker_0"));
  b.made().collections(1, "other");
  b.step({.step = 0, .values = {{"x", tensor_of<float>({1})}}, .worker = "other"});
  const DiffReport report = diff_of(a, b);
  EXPECT_TRUE(report.is_equal);
  EXPECT_EQ(report.values_compared, 1);
}

TEST(Diff, ADamagedValueIsADifferenceThatIsNamed) {
  LocalTrial a("damaged_a");
  LocalTrial b("damaged_b");
  a.step(sample(0, 1));
  b.step(sample(0, 1));
  b.made().flip(format::event_path(0, "worker_0"), 40);
  const DiffReport report = diff_of(a, b);
  EXPECT_FALSE(report.is_equal);
  EXPECT_THAT(mismatches_of(report), ElementsAre("unreadable loss 1"));
  EXPECT_THAT(report.mismatches[0].what, HasSubstr("in B"));
}

TEST(Diff, ManyValuesInAnyOrderOfTheFilesAreComparedInTheOrderOfA) {
  constexpr int kTensors = 1500;  // with the steps, more than wait together
  LocalTrial a("many_a");
  LocalTrial b("many_b");
  for (std::int64_t step = 0; step < 7; ++step) {
    MadeStep in_a{.step = step};
    MadeStep in_b{.step = step};
    for (int i = 0; i < kTensors; ++i) {
      in_a.values.push_back({fmt::format("t{}", i), tensor_of<float>({static_cast<float>(i)})});
      const bool differs = step == 6 && (i == 3 || i == 1200);
      in_b.values.push_back({fmt::format("t{}", i), tensor_of<float>({static_cast<float>(differs ? -i : i)})});
    }
    std::ranges::reverse(in_b.values);
    a.step(in_a);
    b.step(in_b);
  }
  const DiffReport report = diff_of(a, b);
  EXPECT_EQ(report.values_compared, 7 * kTensors);
  EXPECT_THAT(report.mismatches, ElementsAre());
  ASSERT_TRUE(report.first);
  EXPECT_EQ(report.first->tensor, "t3");
  EXPECT_EQ(report.first->global_step_a.number, 6);
  EXPECT_EQ(std::ranges::count_if(report.tensors, &TensorDiff::differs), 2);
}

TEST(Diff, ADamagedReductionIsNamedAsOne) {
  LocalTrial a("damaged_reduction_a");
  LocalTrial b("damaged_reduction_b");
  for (LocalTrial* trial : {&a, &b}) {
    trial->step({.step = 0, .values = {{"smdebug/reductions/l2/w", tensor_of<float>({1})}}});
  }
  b.made().flip(format::event_path(0, "worker_0"), 40);
  EXPECT_THAT(mismatches_of(diff_of(a, b)), ElementsAre("unreadable w 1"));
}

TEST(Diff, PointsAreThinnedKeepingTheLargest) {
  auto table = DiffTable::make({});
  ASSERT_TRUE(table.ok());
  for (std::int64_t step = 0; step < 9000; ++step) {
    const ComparedPair pair{.tensor = "x", .global_step_a = {step}, .worker_a = "w", .worker_b = "w"};
    table->add(pair, tensor_of<float>({0}), tensor_of<float>({step == 7777 ? 5.F : 1.F}));
  }
  DiffReport report;
  ASSERT_TRUE(table->finish(&report).ok());
  const auto& points = report.tensors.at(0).points;
  EXPECT_LE(points.size(), TensorDiff::kMaxPoints);
  EXPECT_GT(points.size(), TensorDiff::kMaxPoints / 4);
  const auto largest = std::ranges::max_element(points, {}, &TensorDiff::Point::max_abs);
  EXPECT_EQ(largest->global_step, 7777);
  EXPECT_TRUE(std::ranges::is_sorted(points, {}, &TensorDiff::Point::global_step));
}

TEST(DiffHtml, NamesAreEscapedAndNothingIsFetched) {
  LocalTrial a("html_a");
  LocalTrial b("html_b");
  const std::string name = "<script>alert(1)</script>&\"'\x1b[31m";
  a.step({.step = 0, .values = {{name, tensor_of<float>({1})}, {"<b>", tensor_of<float>({1})}}});
  b.step({.step = 0, .values = {{name, tensor_of<float>({kNan})}}});
  const std::string page = diff_html(diff_of(a, b));
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;"), HasSubstr("&lt;b&gt;"),
                          HasSubstr("<svg"), HasSubstr("Different."), HasSubstr("First difference")));
  for (const char* bad : {"<script", "http://", "https://", "<b>", "\x1b", "src=", "href=", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(bad)));
  }
  EXPECT_THAT(diff_html(diff_of(a, a)), HasSubstr("Equal."));
}

}  // namespace
}  // namespace tornasole::tools
