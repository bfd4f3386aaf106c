#include "cli/live_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/finding_log.h"
#include "cli/step_rate.h"
#include "cli/text_width.h"
#include "cli/watch_view.h"

namespace tornasole::cli {
namespace {

TEST(StepRate, IsThatOfTheLastHalfMinute) {
  StepRate rate;
  EXPECT_FALSE(rate.per_second(0));
  rate.note(0, 10);
  EXPECT_FALSE(rate.per_second(1)) << "one arrival has no rate";
  rate.note(0.5, 10);
  EXPECT_FALSE(rate.per_second(1)) << "nothing new is no arrival";
  for (int second = 1; second <= 100; ++second) rate.note(second, 10 + second);
  EXPECT_NEAR(*rate.per_second(100), 1, 1e-9);
  for (int second = 101; second <= 140; ++second) rate.note(second, 110 + 5 * (second - 100));
  EXPECT_NEAR(*rate.per_second(140), 5, 0.2) << "what is long ago does not count";
}

TEST(StepRate, FallsWhileNothingComes) {
  StepRate rate;
  for (int second = 0; second <= 10; ++second) rate.note(second, second);
  EXPECT_NEAR(*rate.per_second(10.5), 1, 1e-9);
  EXPECT_LT(*rate.per_second(40), 0.3);
}

TEST(StepRate, OfStepsThatComeRarely) {
  StepRate rate;
  rate.note(0, 0);
  rate.note(100, 500);
  rate.note(200, 1000);
  rate.note(300, 1500);
  EXPECT_NEAR(*rate.per_second(310), 5, 1e-9);
}

TEST(CheckPace, TakesATenthOfAProcessorAtMost) {
  CheckPace pace;
  EXPECT_TRUE(pace.is_due(0));
  pace.note(100, 2);
  EXPECT_FALSE(pace.is_due(117));
  EXPECT_TRUE(pace.is_due(118));
}

Verdict verdict(const char* rule, Severity severity, const char* tensor) {
  return {.rule = rule, .severity = severity, .tensors = {tensor}, .message = "text"};
}

TEST(FindingLog, TellsWhatIsNewWorseAndGone) {
  FindingLog log;
  EXPECT_TRUE(log.update({}).empty());
  CheckReport report{.verdicts = {verdict("A", Severity::kWarning, "x"), verdict("A", Severity::kWarning, "x"),
                                  verdict("B", Severity::kInfo, "y")}};
  report.verdicts[2].symptom_of = 0;
  const auto first = log.update(report);
  ASSERT_EQ(first.size(), 3U) << "two of one rule about one tensor are two";
  EXPECT_EQ(first[2].cause, "A");

  report.verdicts[0].last_step = 9;
  report.verdicts[0].message = "another";
  EXPECT_TRUE(log.update(report).empty()) << "steps go on while a finding lasts";

  report.verdicts[2].severity = Severity::kError;
  const auto worse = log.update(report);
  ASSERT_EQ(worse.size(), 1U);
  EXPECT_EQ(worse[0].change, FindingChange::kWorse);

  report.verdicts.resize(2);
  const auto gone = log.update(report);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].change, FindingChange::kWithdrawn);
  EXPECT_EQ(gone[0].verdict.rule, "B");
}

TEST(WatchScreen, FitsTheTerminal) {
  LiveState state{.status = {.state = RunState::kRunning}, .steps = 100, .last_step = 99, .steps_per_s = 12.345};
  for (int i = 0; i < 5; ++i) {
    LossLine loss{.name = "loss" + std::to_string(i) + std::string(200, 'x'), .mode = Mode::kTrain};
    for (int step = 0; step < 100; ++step) loss.points.push_back({double(step), 1.0 / (step + 1)});
    state.losses.push_back(std::move(loss));
  }
  for (int i = 0; i < 30; ++i) state.report.verdicts.push_back(verdict("Rule", Severity::kError, "tensor"));
  state.report.verdicts[0].message = "bad\x1b[31m \xf0\x9f\x98\x80" + std::string(300, 'y');
  state.checked_step = 99;
  state.health = {
      .workers = 1, .due = 103, .committed = 100, .dropped = {{"queue full", 3}}, .wait_s = 0.5, .elapsed_s = 50};
  for (const std::size_t height : {1U, 4U, 10U, 24U, 60U}) {
    for (const std::size_t width : {20U, 80U, 200U}) {
      const Terminal terminal{.is_terminal = true, .has_unicode = true, .width = width};
      const std::string text = watch_screen(state, "runs/\x1b[2Jx", terminal, height);
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
      EXPECT_LT(lines, std::max<std::size_t>(height, 4)) << height;
      for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        EXPECT_LE(columns_of(text.substr(begin, end - begin)), width) << text.substr(begin, end - begin);
      }
      if (width < 80 || height < 24) continue;
      EXPECT_NE(text.find("12.3 steps/s"), std::string::npos) << text;
      EXPECT_NE(text.find("100 steps kept, 3 dropped (queue full), the training waited 0.5 s (1"), std::string::npos);
      EXPECT_NE(text.find("findings, up to step 99"), std::string::npos);
      EXPECT_NE(text.find(" more"), std::string::npos) << "not all findings fit";
    }
  }
}

}  // namespace
}  // namespace tornasole::cli
