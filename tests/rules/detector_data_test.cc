// ReplicaDivergence, WorkerOutlier, DuplicateShards, DataRepeat, InputRange, LabelEntropy, TrainEvalMismatch.

#include <cmath>

#include "format/model_file.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

std::vector<std::string> names_of(std::size_t workers) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < workers; ++i) names.push_back("w" + std::to_string(i));
  return names;
}

TEST(ReplicaDivergence, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<Tensor> copies;  // by worker
    Parameters parameters;
    std::vector<std::string> outside;  // workers outside the majority
  };
  const Case cases[] = {
      {"equal", {floats({1, 2}), floats({1, 2})}, {}, {}},
      {"one differs a little", {floats({1, 2}), floats({1, 2.0001F})}, {}, {"w1"}},
      {"a difference that is allowed", {floats({1, 2}), floats({1, 2.0001F})}, {{"rtol", "0.001"}}, {}},
      {"a difference above what is allowed", {floats({1, 2}), floats({1, 2.1F})}, {{"rtol", "0.001"}}, {"w1"}},
      {"the majority is right", {floats({9}), floats({1}), floats({1})}, {}, {"w0"}},
      {"all three differ", {floats({9}), floats({1}), floats({2})}, {}, {"w1", "w2"}},
      {"another shape", {floats({1, 1}), floats({1, 1}, {1, 2})}, {{"rtol", "100"}}, {}},  // the same bytes
      {"another size", {floats({1, 1}), floats({1, 1, 1})}, {{"rtol", "100"}}, {"w1"}},
      {"NaN on one worker only", {floats({1}), floats({NAN})}, {{"rtol", "100"}}, {"w1"}},
      {"zeros of both signs are equal", {floats({0.0F}), floats({-0.0F})}, {}, {}},
      {"meant to differ", {floats({1}), floats({2})}, {{"sharded", "^fc"}}, {}},
      {"one copy", {floats({1})}, {}, {}},
  };
  for (const Case& c : cases) {
    const auto workers = names_of(c.copies.size());
    RuleWorld world({}, workers);
    for (std::size_t i = 0; i < workers.size(); ++i) world.save(0, {{"fc.weight", c.copies[i]}}, {}, workers[i]);
    std::vector<std::string> outside;
    for (const Violation& violation : world.run("ReplicaDivergence", c.parameters).report.violations()) {
      outside.push_back(violation.worker);
    }
    EXPECT_EQ(outside, c.outside) << c.what;
  }
}

TEST(ReplicaDivergence, StoredHashesSuffice) {
  const auto hash = [](std::int64_t bits) { return tools::tensor_of<std::int64_t>({bits}); };
  RuleWorld world({}, {"a", "b"});
  const auto save = [&](std::int64_t step, std::int64_t a, std::int64_t b) {
    world.save(step, {{"derived/hash/fc.weight", hash(a)}, {reduced("mean", "fc.weight"), scalar(1)}}, {}, "a");
    world.save(step, {{"derived/hash/fc.weight", hash(b)}, {reduced("mean", "fc.weight"), scalar(1)}}, {}, "b");
  };
  save(0, 5, 5);
  save(1, 5, 6);
  EXPECT_EQ(world.met("ReplicaDivergence"), Steps{1});
  EXPECT_EQ(world.run("ReplicaDivergence", {{"rtol", "0.1"}}).report.skipped.at("no value"), 1);
}

TEST(WorkerOutlier, AScalarFarFromThoseOfAllOthers) {
  struct Case {
    const char* what;
    std::vector<float> last;  // of the outlier, step by step; the others have 1, 1.1, 0.9, 1
    Steps met;
    std::size_t workers = 5;
  };
  const Case cases[] = {
      {"three steps in a row", {9, 9, 9, 9}, {2, 3}},  {"not in a row", {9, 9, 1, 9, 9}, {}},
      {"downwards, too", {-9, -9, -9}, {2}},           {"within eight deviations", {1.5F, 1.5F, 1.5F}, {}},
      {"three workers are too few", {9, 9, 9}, {}, 3}, {"four are enough", {9, 9, 9}, {2}, 4},
  };
  const float usual[] = {1, 1.1F, 0.9F, 1};
  for (const Case& c : cases) {
    const auto workers = names_of(c.workers);
    RuleWorld world({}, workers);
    for (std::size_t step = 0; step < c.last.size(); ++step) {
      for (std::size_t i = 0; i < c.workers; ++i) {
        const float loss = i + 1 == c.workers ? c.last[step] : usual[i];
        world.save(static_cast<std::int64_t>(step), {{"loss", scalar(loss)}}, {}, workers[i]);
      }
    }
    EXPECT_EQ(world.met("WorkerOutlier"), c.met) << c.what;
  }
}

TEST(WorkerOutlier, AGradientThatJumpsOnOneWorkerOnly) {
  struct Case {
    const char* what;
    std::vector<float> second;  // norms at the second step; 1 at the first
    bool is_met;
  };
  const Case cases[] = {
      {"one jumps", {1, 1, 11, 1}, true},
      {"ten times is not more than ten times", {1, 1, 10, 1}, false},
      {"two jump", {1, 11, 11, 1}, false},
      {"three workers", {1, 1, 11}, false},
  };
  for (const Case& c : cases) {
    const auto workers = names_of(c.second.size());
    RuleWorld world({}, workers);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      world.save(0, {{reduced("l2", "gradient/w"), scalar(1)}}, {}, workers[i]);
      world.save(1, {{reduced("l2", "gradient/w"), scalar(c.second[i])}}, {}, workers[i]);
    }
    const RuleOutcome outcome = world.run("WorkerOutlier", {{"patience", "100"}});
    EXPECT_EQ(outcome.steps_met, c.is_met ? Steps{1} : Steps{}) << c.what;
    if (c.is_met) {
      EXPECT_EQ(outcome.report.violations()[0].worker, "w2") << c.what;
    }
  }
}

const std::map<std::string, std::vector<std::string>> kInputs = {{"inputs", {"^input"}}};

TEST(DuplicateShards, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<std::vector<float>> batches;  // by step, then by worker
    Steps met;
  };
  const Case cases[] = {
      {"equal at three steps", {{1, 1}, {2, 2}, {3, 3}, {4, 4}}, {2, 3}},
      {"not in a row", {{1, 1}, {2, 2}, {3, 9}, {4, 4}, {5, 5}}, {}},
      {"different", {{1, 2}, {2, 1}, {3, 4}}, {}},
      {"the second and the third of three", {{1, 2, 2}, {2, 3, 3}, {3, 4, 4}}, {2}},
      {"other workers each time", {{1, 1, 2}, {1, 2, 2}, {1, 2, 1}}, {}},
  };
  for (const Case& c : cases) {
    const auto workers = names_of(c.batches[0].size());
    RuleWorld world(kInputs, workers);
    for (std::size_t step = 0; step < c.batches.size(); ++step) {
      for (std::size_t i = 0; i < workers.size(); ++i) {
        world.save(static_cast<std::int64_t>(step), {{"input_0", floats({c.batches[step][i], 0})}}, {}, workers[i]);
      }
    }
    EXPECT_EQ(world.met("DuplicateShards"), c.met) << c.what;
  }
}

TEST(DuplicateShards, AllInputsTogetherAreTheBatch) {
  RuleWorld world(kInputs, {"a", "b"});
  for (std::int64_t step = 0; step < 3; ++step) {
    world.save(step, {{"input_0", floats({1})}, {"input_1", floats({1})}}, {}, "a");
    world.save(step, {{"input_0", floats({1})}, {"input_1", floats({2})}}, {}, "b");
  }
  EXPECT_TRUE(world.met("DuplicateShards").empty());
  EXPECT_EQ(world.met("DuplicateShards", {{"tensor_regex", "^input_0"}}), Steps{2});
}

TEST(DataRepeat, WorkedCases) {
  struct Case {
    const char* what;
    std::string batches;
    Steps met;
    const char* epoch_steps = "3";
  };
  const Case cases[] = {
      {"the same order in the second epoch", "ABCABC", {5}},
      {"another order", "ABCBAC", {}},
      {"twice in one epoch", "ABAC", {2}},
      {"the end of one epoch and the beginning of the next", "ABCCAB", {}},
      {"the same order in each epoch", "ABCABCABC", {5, 8}},
      {"one batch that is the whole data", "AAA", {}, "1"},
      {"an epoch that is not over yet", "ABCAB", {}},
  };
  for (const Case& c : cases) {
    RuleWorld world(kInputs);
    for (std::size_t step = 0; step < c.batches.size(); ++step) {
      world.save(static_cast<std::int64_t>(step), {{"input_0", floats({static_cast<float>(c.batches[step])})}});
    }
    EXPECT_EQ(world.met("DataRepeat", {{"epoch_steps", c.epoch_steps}}), c.met) << c.what;
  }
}

TEST(DataRepeat, CountsTrainingStepsAndNeedsTheLengthOfAnEpoch) {
  RuleWorld world(kInputs);
  std::int64_t train = 0;
  for (std::int64_t step = 0; step < 8; ++step) {
    const bool is_eval = step % 4 == 3;  // after each epoch, always the same batch
    const ModeStep at = is_eval ? ModeStep{Mode::kEval, step / 4} : ModeStep{Mode::kTrain, train++};
    world.save(step, {{"input_0", floats({is_eval ? 0.0F : static_cast<float>(step)})}}, at);
  }
  EXPECT_TRUE(world.met("DataRepeat", {{"epoch_steps", "3"}}).empty());
  const auto rule = make_rule("DataRepeat", {}, {});
  ASSERT_FALSE(rule.ok());
  EXPECT_EQ(rule.error().kind, ErrorKind::kInsufficientInformation);
}

TEST(InputRange, WorkedCases) {
  struct Case {
    const char* what;
    Tensor input;
    Parameters parameters;
    std::int64_t violations;
  };
  const Case cases[] = {
      {"within -1 and 1, ends included", floats({-1, 0, 1}), {}, 0},
      {"too large", floats({-1, 0, 255}), {}, 1},
      {"too small", floats({-1.5F, 0}), {}, 1},
      {"the range is a parameter", floats({0, 255}), {{"low", "0"}, {"high", "255"}}, 0},
      {"NaN", floats({0, NAN}), {}, 1},
      {"NaN does not hide the range", floats({2, NAN}), {}, 2},
      {"infinity", floats({0, INFINITY}), {}, 1},
      {"integers", tools::tensor_of<std::int32_t>({0, 1}), {}, 1},
      {"a constant column", floats({0.1F, 0.5F, 0.2F, 0.5F}, {2, 2}), {}, 1},
      {"a table with one row has no constant columns", floats({0.1F, 0.5F}, {1, 2}), {}, 0},
      {"images are no tables", filled(0.5F, {2, 1, 1, 1}), {}, 0},
  };
  for (const Case& c : cases) {
    RuleWorld world(kInputs);
    world.save(0, {{"input_0", c.input}});
    EXPECT_EQ(world.run("InputRange", c.parameters).report.violations_count, c.violations) << c.what;
  }
}

TEST(LabelEntropy, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<std::vector<float>> labels;  // by step
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"two classes alike", {{0, 1, 0, 1}}, {{"samples", "4"}}, {}},
      {"nearly all of one class: 0.337", {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, {{"samples", "16"}}, {0}},
      {"one in eight: 0.544", {{0, 0, 0, 0, 0, 0, 0, 1}}, {{"samples", "8"}}, {}},
      {"all of one class", {{3, 3, 3, 3}}, {{"samples", "4"}}, {0}},
      {"more classes than are seen", {{0, 1, 0, 1}}, {{"samples", "4"}, {"classes", "5"}}, {0}},
      {"half of the largest entropy is not below half", {{0, 1, 0, 1}}, {{"samples", "4"}, {"classes", "4"}}, {}},
      {"classes seen before count", {{0, 1, 2, 3, 4}, {0, 0, 1, 1, 1}}, {{"samples", "5"}}, {1}},
      {"too few labels", {{0, 0, 0}}, {{"samples", "4"}}, {}},
      {"over steps", {{0, 0}, {0, 0}}, {{"samples", "4"}}, {1}},
      {"the threshold is a parameter", {{0, 0, 0, 1}}, {{"samples", "4"}, {"threshold", "0.9"}}, {0}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    for (std::size_t step = 0; step < c.labels.size(); ++step) {
      world.save(static_cast<std::int64_t>(step), {{"labels", floats(c.labels[step])}});
    }
    EXPECT_EQ(world.met("LabelEntropy", c.parameters), c.met) << c.what;
  }
}

TEST(TrainEvalMismatch, TheSameBatchInBothModes) {
  struct Case {
    const char* what;
    float train_batch, train_loss, eval_batch, eval_loss;
    std::int64_t eval_step;
    bool is_met;
  };
  const Case cases[] = {
      {"less than half as much", 7, 1.0F, 7, 0.4F, 1, true},
      {"more than half more", 7, 1.0F, 7, 1.6F, 1, true},
      {"half of it is allowed", 7, 1.0F, 7, 1.5F, 1, false},
      {"another batch", 7, 1.0F, 8, 9.0F, 1, false},
      {"long after", 7, 1.0F, 7, 0.1F, 11, false},
      {"not too long after", 7, 1.0F, 7, 0.1F, 10, true},
      {"NaN", 7, 1.0F, 7, NAN, 1, false},
  };
  for (const Case& c : cases) {
    RuleWorld world(kInputs);
    world.save(0, {{"input_0", floats({c.train_batch})}, {"loss", scalar(c.train_loss)}}, ModeStep{Mode::kTrain, 0});
    world.save(c.eval_step, {{"input_0", floats({c.eval_batch})}, {"loss", scalar(c.eval_loss)}},
               ModeStep{Mode::kEval, 0});
    EXPECT_EQ(world.met("TrainEvalMismatch"), c.is_met ? Steps{c.eval_step} : Steps{}) << c.what;
  }
}

TEST(TrainEvalMismatch, TheModeOfTheModel) {
  struct Case {
    const char* what;
    std::string layer;
    StepFacts facts;
    bool is_met;
  };
  const Case cases[] = {
      {"a backward pass in evaluation mode", "Linear", {.training = false, .backward_in_eval = true}, true},
      {"no backward pass in evaluation mode", "Linear", {.training = false, .backward_in_eval = false}, false},
      {"drop-out is active without gradients", "Dropout", {.training = true, .grad_enabled = false}, true},
      {"so is batch normalisation", "BatchNorm2d", {.training = true, .grad_enabled = false}, true},
      {"a model without either", "Linear", {.training = true, .grad_enabled = false}, false},
      {"training with gradients", "Dropout", {.training = true, .grad_enabled = true}, false},
      {"evaluation without gradients", "Dropout", {.training = false, .grad_enabled = false}, false},
      {"nothing is known", "Dropout", {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    ModelDescription model;
    model.modules = {{.path = "net.layer", .type = c.layer, .parent = "net"}};
    world.made().write(format::model_path("worker_0"), format::encode_model(model, "pytorch", 1));
    // The step with the facts has no loss; the next one has.
    const tools::MadeStep step{.step = 0, .values = {{"x", scalar(1)}}};
    auto encoded = tools::MadeTrial::encode(step);
    encoded.index.training = c.facts.training;
    encoded.index.grad_enabled = c.facts.grad_enabled;
    encoded.index.backward_in_eval = c.facts.backward_in_eval;
    world.made().write(encoded.index.event_file, encoded.events);
    world.made().write(format::index_path(0, "worker_0"), format::encode_index(encoded.index, true));
    world.save(1, {{"loss", scalar(1)}});
    const RuleOutcome outcome = world.run("TrainEvalMismatch");
    EXPECT_EQ(outcome.steps_met, c.is_met ? Steps{1} : Steps{}) << c.what;
    if (c.is_met) {
      EXPECT_NE(outcome.report.violations()[0].message.find("step 0"), std::string::npos) << c.what;
    }
  }
}

}  // namespace
}  // namespace tornasole::rules
