#include "capture/health.h"

#include <gtest/gtest.h>

namespace tornasole::capture {
namespace {

std::int64_t dropped(const Health& health) {
  std::int64_t steps = 0;
  for (const auto& [cause, count] : health.counts().dropped_steps) steps += count;
  return steps;
}

TEST(Health, EveryDueStepIsCommittedOrDropped) {
  Health health({});
  for (int i = 0; i < 5; ++i) health.step_due();
  health.step_committed(0, 10);
  health.step_dropped("io", {});
  EXPECT_EQ(health.unaccounted_steps(), 3);
  health.give_up_steps("close_timeout", {});
  EXPECT_EQ(health.counts().dropped_steps.at("close_timeout"), 3);
  EXPECT_EQ(health.unaccounted_steps(), 0);
}

// After a close that waited long enough, the writer is left behind and may still be at work.
TEST(Health, AStepThatComesThroughAfterItWasGivenUpIsNotCountedTwice) {
  Health health({});
  for (int i = 0; i < 4; ++i) health.step_due();
  health.give_up_steps("close_timeout", {});
  health.step_committed(0, 10);
  health.step_dropped("io", {});
  EXPECT_EQ(health.counts().committed, 1);
  EXPECT_EQ(health.counts().dropped_steps.at("close_timeout"), 2);
  EXPECT_EQ(health.counts().committed + dropped(health), health.counts().due);
  health.give_up_steps("close_timeout", {});
  EXPECT_EQ(dropped(health), 3) << "nothing was left to give up";
}

}  // namespace
}  // namespace tornasole::capture
