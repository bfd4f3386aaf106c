#include "plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace tornasole::plan {
namespace {

using config::Schedule;

TEST(Schedule, SavesTheStepsOfTheExamples) {
  struct Case {
    const char* what;
    Schedule schedule;
    std::vector<std::int64_t> saved;  // up to step 1200
  };
  const Case cases[] = {
      {"the default is every 500 steps from 0", {}, {0, 500, 1000}},
      {"an end is exclusive", {.save_interval = 100, .end_step = 200}, {0, 100}},
      {"an end just past a multiple includes it", {.save_interval = 100, .end_step = 201}, {0, 100, 200}},
      {"a start does not shift the multiples", {.save_interval = 300, .start_step = 150}, {300, 600, 900, 1200}},
      {"a start at a multiple saves it", {.save_interval = 400, .start_step = 400}, {400, 800, 1200}},
      {"listed steps are saved besides the interval", {.save_steps = {3, 7}}, {0, 3, 7, 500, 1000}},
      {"listed steps ignore the end", {.save_interval = 4, .end_step = 10, .save_steps = {600}}, {0, 4, 8, 600}},
      {"listed steps ignore the start", {.start_step = 900, .save_steps = {5}}, {5, 1000}},
      {"an end of 0 switches off", {.end_step = 0}, {}},
      {"an end of 0 switches listed steps off too", {.end_step = 0, .save_steps = {5}}, {}},
      {"a negative end switches off", {.end_step = -1, .save_steps = {5}}, {}},
      {"an end before the start leaves the listed steps", {.start_step = 50, .end_step = 20, .save_steps = {30}}, {30}},
      {"a negative start is a start at 0", {.save_interval = 600, .start_step = -7}, {0, 600, 1200}},
  };
  for (const Case& c : cases) {
    std::vector<std::int64_t> saved;
    for (std::int64_t step = 0; step <= 1200; ++step) {
      if (is_due(c.schedule, step)) saved.push_back(step);
    }
    EXPECT_EQ(saved, c.saved) << c.what;
  }
}

TEST(Schedule, EveryStepIsSavedAtIntervalOne) {
  for (std::int64_t step = 0; step < 50; ++step) EXPECT_TRUE(is_due({.save_interval = 1}, step));
}

TEST(Schedule, WhatIsTheSameUntilAStepIsTheSameUpToIt) {
  constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
  struct Case {
    const char* what;
    Schedule schedule;
    std::int64_t step;
    std::int64_t until;
  };
  const Case cases[] = {
      {"each step, for ever", {.save_interval = 1}, 5, kEver},
      {"each step, up to the end", {.save_interval = 1, .end_step = 9}, 5, 9},
      {"never", {.end_step = 0}, 5, kEver},
      {"none before the start", {.save_interval = 1, .start_step = 8}, 5, 8},
      {"a listed step before the start is alone", {.save_interval = 1, .start_step = 8, .save_steps = {5}}, 5, 6},
      {"one of many", {.save_interval = 10}, 10, 11},
      {"none up to the next", {.save_interval = 10}, 11, 20},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(same_until(c.schedule, c.step), c.until) << c.what;
    for (std::int64_t step = c.step; step < std::min<std::int64_t>(c.until, 100); ++step) {
      EXPECT_EQ(is_due(c.schedule, step), is_due(c.schedule, c.step)) << c.what;
    }
  }
}

TEST(Schedule, NextDueIsTheFirstDueStepForRandomSchedules) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 2000; ++round) {
    Schedule schedule{.save_interval = 1 + below(12), .start_step = below(30) - 5};
    if (below(2) == 0) schedule.end_step = below(50) - 3;
    for (std::int64_t step = below(9); step < 60; step += 1 + below(20)) schedule.save_steps.push_back(step);
    const std::int64_t from = below(60);
    std::int64_t expected = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t step = from; step < 200; ++step) {
      if (is_due(schedule, step)) {
        expected = step;
        break;
      }
    }
    EXPECT_EQ(next_due(schedule, from), expected) << "interval " << schedule.save_interval << ", from " << from;
  }
}

TEST(Schedule, NextDueStaysInRangeAtTheEndOfTheNumbers) {
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(next_due({.save_interval = 500}, kLast - 1), kLast);
  EXPECT_EQ(next_due({.save_interval = kLast}, 1), kLast);
}

}  // namespace
}  // namespace tornasole::plan
