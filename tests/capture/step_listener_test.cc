// What adapters are told of the steps of a hook, and what they may do then.

#include <memory>
#include <string>
#include <vector>

#include "capture/hook_fixture.h"

namespace tornasole::capture {
namespace {

const std::vector<float> kWeights = {1, 2};

class Notes : public StepListener {
 public:
  std::optional<Mode> mode() noexcept override { return is_training; }
  void step_began(const StepRef& step) noexcept override {
    events.push_back("began " + std::to_string(step.global_step()));
    step.save("weight", kWeights);
    open = step;
  }
  void step_ends(const StepRef& step) noexcept override {
    events.push_back("ends " + std::to_string(step.global_step()));
    step.save("late", kWeights);
  }
  void hook_closed() noexcept override { events.emplace_back("closed"); }

  std::vector<std::string> events;
  std::optional<Mode> is_training;
  StepRef open;
};

class StepListeners : public HookFixture {
 protected:
  Hook open_with_notes(std::int64_t interval) {
    Hook hook = open({.save_config = {.save_interval = interval}, .save_all = true});
    hook.add_listener(notes_);
    return hook;
  }
  using Events = std::vector<std::string>;
  std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

TEST_F(StepListeners, AreToldOfDueStepsAloneAndMaySaveAtBothEnds) {
  {
    Hook hook = open_with_notes(2);
    for (int i = 0; i < 4; ++i) auto step = hook.begin_step(Mode::kTrain);
  }
  EXPECT_EQ(notes_->events, (Events{"began 0", "ends 0", "began 2", "ends 2", "closed"}));
  EXPECT_EQ(names_at(2), (Events{"late", "weight"}));
  EXPECT_EQ(names_at(1), Events{});
}

TEST_F(StepListeners, HearTheEndOfAStepOnceWhoeverEndsIt) {
  {
    Hook hook = open_with_notes(1);
    auto first = hook.begin_step(Mode::kTrain);
    auto second = hook.begin_step(Mode::kTrain);  // ends the first
    first.end();
    hook.set_mode(Mode::kTrain);  // which it is already
    EXPECT_EQ(notes_->events, (Events{"began 0", "ends 0", "began 1"}));
    hook.set_mode(Mode::kEval);
    auto third = hook.begin_step();
    ASSERT_TRUE(hook.close().ok());
  }
  EXPECT_EQ(notes_->events,
            (Events{"began 0", "ends 0", "began 1", "ends 1", "began 2", "ends 2", "closed", "closed"}));
  EXPECT_EQ(names_at(2), (Events{"late", "weight"}));
}

TEST_F(StepListeners, TellTheModeOfAStepThatIsBegunWithoutOne) {
  Hook hook = open_with_notes(1);
  EXPECT_EQ(hook.begin_step().mode(), Mode::kGlobal);
  notes_->is_training = Mode::kEval;
  EXPECT_EQ(hook.begin_step().mode(), Mode::kEval);
  EXPECT_EQ(hook.begin_step(Mode::kPredict).mode(), Mode::kPredict);
}

TEST_F(StepListeners, WhatTheyKeepOfAStepTakesValuesUntilItEnds) {
  {
    Hook hook = open_with_notes(1);
    auto step = hook.begin_step(Mode::kTrain);
    const StepRef kept = notes_->open;
    kept.save("gradient/w", kWeights);
    EXPECT_TRUE(kept.wants("x"));
    step.end();
    kept.save("too late", kWeights);
  }
  EXPECT_EQ(names_at(0), (Events{"gradient/w", "late", "weight"}));
  EXPECT_FALSE(StepRef().wants("x"));
  StepRef().save_scalar("x", 1);  // of no step: nothing happens
  EXPECT_EQ(StepRef().saved_collections(), Events{});
}

TEST_F(StepListeners, WhatAHookIsToldCanBeToldToItsStep) {
  {
    Hook hook = open_with_notes(1);
    auto step = hook.begin_step(Mode::kTrain);
    const StepRef kept = notes_->open;
    kept.save_scalar("learning_rate/0", 0.5);
    kept.set_facts({.optimizer_step = 7});
    kept.log(LogLevel::kWarning, "something else");
    const Events saved = kept.saved_collections();
    EXPECT_NE(std::ranges::find(saved, "all"), saved.end());
  }
  EXPECT_EQ(names_at(0, "scalar/"), Events{"scalar/learning_rate/0"});
  EXPECT_EQ(read_steps(*store_).at(0).index.optimizer_step, 7);
  EXPECT_EQ(warnings_with("something else"), 1);
}

TEST_F(StepListeners, AStepThatBecomesDueIsToldThen) {
  Hook hook = open_with_notes(5);
  hook.begin_step(Mode::kTrain).end();
  auto step = hook.begin_step(Mode::kTrain);
  ASSERT_EQ(notes_->events.size(), 2U);
  const std::string_view all[] = {"all"};
  step.make_due(all);
  EXPECT_EQ(notes_->events.back(), "began 1");
}

}  // namespace
}  // namespace tornasole::capture
