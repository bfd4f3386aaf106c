// learn_invariants, the file of invariants, InvariantCheck.

#include "tornasole/invariants.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

namespace fs = std::filesystem;

// Eight steps of a training of two layers on two workers: weights that agree, data that does not.
class Training {
 public:
  using Change = std::function<void(std::int64_t step, const std::string& worker, Values* values)>;
  explicit Training(const Change& change = {}) : world_({}, {"w0", "w1"}) {
    for (std::int64_t step = 0; step < 8; ++step) {
      for (const std::string worker : {"w0", "w1"}) {
        const auto x = static_cast<float>(step);
        const float own = worker == "w0" ? 0 : 0.5F;
        Values values = {{"layer0.weight", floats({1 + x / 10, 2})},
                         {"gradient/layer0.weight", floats({0.01F + own, 0.02F})},
                         {"layer1.weight", floats({1 - x / 10, 3, 1})},
                         {"gradient/layer1.weight", floats({0.02F, 0.03F + own, 0})},
                         {"mask", floats({1, 0})},
                         {"input", floats({x, own, 1})},
                         {"loss", scalar(1 / (x + 1))}};
        if (step % 2 == 0) values.emplace_back("sometimes", scalar(1));
        if (change) change(step, worker, &values);
        world_.save(step, std::move(values), {}, worker);
      }
    }
  }
  RuleWorld& world() { return world_; }

 private:
  RuleWorld world_;
};

Tensor* find(Values* values, std::string_view name) {
  const auto found = std::ranges::find(*values, name, &std::pair<std::string, Tensor>::first);
  return found == values->end() ? nullptr : &found->second;
}

Invariants learned_from(std::vector<Training*> trainings) {
  std::vector<Trial> trials;
  for (Training* training : trainings) trials.push_back(training->world().open());
  std::vector<Trial*> pointers;
  for (Trial& trial : trials) pointers.push_back(&trial);
  auto learned = learn_invariants(pointers);
  EXPECT_TRUE(learned.ok());
  return std::move(*learned);
}

// "kind tensor", with the statistic of a range.
std::vector<std::string> lines_of(const Invariants& invariants) {
  std::vector<std::string> lines;
  for (const Invariant& one : invariants.list) {
    lines.push_back(std::string(invariant_kind_name(one.kind)) + " " + one.tensor +
                    (one.statistic.empty() ? "" : " " + one.statistic));
  }
  return lines;
}

bool has(const Invariants& invariants, const std::string& line) {
  const auto lines = lines_of(invariants);
  return std::ranges::find(lines, line) != lines.end();
}

TEST(LearnInvariants, WhatAlwaysHeldIsKept) {
  Training training;
  const Invariants learned = learned_from({&training});
  EXPECT_EQ(learned.steps, 8);
  const char* kept[] = {
      R"(finite ^layer\d+\.weight$)",
      R"(dtype ^layer\d+\.weight$)",
      R"(changes ^layer\d+\.weight$)",
      R"(equal_workers ^layer\d+\.weight$)",
      R"(range ^layer\d+\.weight$ l2)",
      R"(ratio ^gradient/layer\d+\.weight$)",
      R"(present ^layer\d+\.weight$)",
      R"(distinct_workers ^gradient/layer\d+\.weight$)",
      R"(shape ^layer\d+\.weight$)",
      R"(constant ^mask$)",
      R"(distinct_workers ^input$)",
      R"(range ^loss$ mean)",
      R"(constant ^gradient/layer\d+\.weight$)",
  };
  for (const char* line : kept) EXPECT_TRUE(has(learned, line)) << line;
  const char* dropped[] = {
      R"(constant ^layer\d+\.weight$)",
      R"(equal_workers ^input$)",
      R"(present ^sometimes$)",
      R"(changes ^mask$)",
  };
  for (const char* line : dropped) EXPECT_FALSE(has(learned, line)) << line;
  for (const Invariant& one : learned.list) {
    EXPECT_GE(one.support, 5);
    EXPECT_EQ(one.mode, Mode::kTrain);
    if (one.kind == InvariantKind::kShape && one.tensor == "^mask$") {
      EXPECT_EQ(one.shape, Shape{2});
    }
    if (one.kind == InvariantKind::kShape && one.tensor.starts_with("^layer")) {
      EXPECT_FALSE(one.shape) << "layers differ in size, each keeps its own";
    }
    if (one.tensor == "^loss$" && one.statistic == "mean") {
      EXPECT_NEAR(*one.low, 0.125 - 10 * 0.875, 1e-6);
      EXPECT_NEAR(*one.high, 1 + 10 * 0.875, 1e-6);
    }
  }
}

TEST(LearnInvariants, EveryGoodRunMustAgree) {
  Training one;
  Training other([](std::int64_t step, const std::string&, Values* values) {
    if (step == 3) *find(values, "loss") = scalar(NAN);
    *find(values, "mask") = floats({1, static_cast<float>(step)});
    std::erase_if(*values, [](const auto& value) { return value.first == "input"; });
  });
  const Invariants learned = learned_from({&one, &other});
  EXPECT_EQ(learned.trials.size(), 2U);
  EXPECT_EQ(learned.steps, 16);
  for (const char* line :
       {"finite ^loss$", "range ^loss$ mean", "constant ^mask$", "changes ^mask$", "present ^input$"}) {
    EXPECT_FALSE(has(learned, line)) << line;
  }
  EXPECT_TRUE(has(learned, "distinct_workers ^input$"));
  EXPECT_TRUE(has(learned, "present ^loss$"));
}

TEST(LearnInvariants, FewStepsTeachNothing) {
  RuleWorld world;
  world.save_series("loss", {1, 2, 3, 4});
  Trial trial = world.open();
  Trial* pointers[] = {&trial};
  const auto learned = learn_invariants(pointers);
  ASSERT_TRUE(learned.ok());
  EXPECT_TRUE(learned->list.empty());
}

class InvariantCheckTest : public ::testing::Test {
 protected:
  InvariantCheckTest() {
    Training good;
    learned_ = learned_from({&good});
    path_ = fs::temp_directory_path() / ("invariants-" + std::to_string(getpid()) + ".jsonl");
    std::ofstream(path_) << learned_.to_text();
  }
  ~InvariantCheckTest() override { fs::remove(path_); }

  Invariants learned_;
  fs::path path_;
};

TEST_F(InvariantCheckTest, TheGoodRunItselfBreaksNothing) {
  Training same;
  const RuleOutcome outcome = same.world().run("InvariantCheck", {{"invariants", path_.string()}});
  EXPECT_EQ(outcome.report.triggered, 0) << outcome.report.violations()[0].message;
  EXPECT_EQ(outcome.steps_evaluated, 8);
  EXPECT_GT(outcome.report.datapoints, 100);
}

TEST_F(InvariantCheckTest, EveryKindIsNoticedAtItsStep) {
  struct Case {
    const char* what;
    Training::Change change;
    const char* message;  // the first violation has this in it
    std::int64_t step;
    const char* tensor;
    const char* worker;
  };
  const auto at = [](std::int64_t wanted, const char* name, Tensor value, const char* only = nullptr) {
    return [=](std::int64_t step, const std::string& worker, Values* values) {
      if (step == wanted && (only == nullptr || worker == only)) *find(values, name) = value;
    };
  };
  const Case cases[] = {
      {"finite", at(4, "loss", scalar(NAN)), "it is not finite; finite of ^loss$ held 16 times", 4, "loss", "w0"},
      {"shape of all", at(2, "mask", floats({1, 0, 0})), "its shape is [3], not [2]", 2, "mask", "w0"},
      {"shape of each", at(5, "layer1.weight", floats({1.5F, 3})), "its shape is [2], not [3]", 5, "layer1.weight",
       "w0"},
      {"dtype", at(3, "loss", tools::tensor_of<double>({0.25})), "its type is float64, not float32", 3, "loss", "w0"},
      {"changes", at(6, "layer0.weight", floats({1.5F, 2})), "it is the same as at the step before", 6, "layer0.weight",
       "w0"},
      {"constant", at(6, "mask", floats({0, 1})), "it is not the same as at the step before", 6, "mask", "w0"},
      {"equal workers", at(6, "layer0.weight", floats({1.61F, 2}), "w1"), "that of w1 differs from that of w0", 6,
       "layer0.weight", "w1"},
      {"distinct workers", at(6, "input", floats({6, 0, 1})), "that of w1 is the same as that of w0", 6, "input", "w1"},
      {"range", at(6, "layer0.weight", floats({1000, 2})), "its max is 1000", 6, "layer0.weight", "w0"},
      {"ratio",
       [](std::int64_t step, const std::string&, Values* values) {
         if (step == 7) *find(values, "gradient/layer0.weight") = floats({0, 0});
       },
       "its l2 over that of what it is the gradient of is 0", 7, "gradient/layer0.weight", "w0"},
      {"present at all steps",
       [](std::int64_t step, const std::string&, Values* values) {
         if (step == 3) std::erase_if(*values, [](const auto& value) { return value.first == "loss"; });
       },
       "loss: it is not there; present of ^loss$", 3, "", ""},
      {"never there",
       [](std::int64_t, const std::string&, Values* values) {
         std::erase_if(*values, [](const auto& value) { return value.first == "loss"; });
       },
       "no tensor of this pattern is there; present of ^loss$", 0, "", ""},
  };
  for (const Case& c : cases) {
    Training bad(c.change);
    const RuleOutcome outcome = bad.world().run("InvariantCheck", {{"invariants", path_.string()}});
    const auto violations = outcome.report.violations();
    const auto found = std::ranges::find_if(
        violations, [&](const Violation& one) { return one.message.find(c.message) != std::string::npos; });
    ASSERT_NE(found, violations.end()) << c.what << (violations.empty() ? "" : ": " + violations[0].message);
    EXPECT_EQ(found->global_step.number, c.step) << c.what;
    EXPECT_EQ(found->tensor, c.tensor) << c.what;
    EXPECT_EQ(found->worker, c.worker) << c.what;
    EXPECT_EQ(outcome.steps_met.front(), c.step) << c.what << ": nothing before it";
    EXPECT_NE(outcome.report.to_json().find("\"broken\": ["), std::string::npos);
  }
}

TEST_F(InvariantCheckTest, NamesWithOtherNumbersAreMeantToo) {
  RuleWorld world;
  world.save(0, {{"layer17.weight", floats({NAN, 1})}});
  const RuleOutcome outcome = world.run("InvariantCheck", {{"invariants", path_.string()}});
  EXPECT_NE(outcome.report.to_json().find("layer17.weight: it is not finite"), std::string::npos);
}

TEST_F(InvariantCheckTest, TheFileIsReadBackAsItWasWritten) {
  const auto read = Invariants::parse(learned_.to_text(), "file");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->to_text(), learned_.to_text());
  EXPECT_GT(read->list.size(), 20U);
}

TEST(InvariantFile, WhatIsWrongIsToldWithFileLineAndWhatIsAllowed) {
  const std::string head = R"({"tornasole_invariants": 1, "trials": [], "steps": 8})"
                           "\n";
  const auto line = [&](const char* text) { return head + text + "\n"; };
  struct Case {
    std::string text;
    const char* told;
  };
  const Case cases[] = {
      {"", "f: is empty"},
      {"\n \n", "f: is empty"},
      {"hello", "f:1: "},
      {"[]", "f:1: [] is no object"},
      {R"({"kind": "finite"})", "f:1: this is no file of invariants"},
      {R"({"tornasole_invariants": 2, "trials": [], "steps": 8})", "f:1: \"tornasole_invariants\" is 2; this program"},
      {R"({"tornasole_invariants": 1, "trials": 3, "steps": 8})", "f:1: \"trials\" is 3; it must be a list of texts"},
      {R"({"tornasole_invariants": 1, "trials": [3], "steps": 8})", "f:1: \"trials\" is [3]; it must be a list"},
      {R"({"tornasole_invariants": 1, "trials": []})", "f:1: \"steps\" is missing"},
      {R"({"tornasole_invariants": 1, "trials": [], "steps": 1, "x": 1})", "f:1: no key \"x\"; allowed: tornasole"},
      {line("{"), "f:2: "},
      {line("{}"), "f:2: \"kind\" is missing"},
      {line(R"({"kind": "nice", "tensor": "x", "mode": "TRAIN", "parameters": {}, "support": 1})"),
       "f:2: \"kind\" is \"nice\"; allowed: finite, shape, dtype"},
      {line(R"({"kind": "finite", "tensor": "(", "mode": "TRAIN", "parameters": {}, "support": 1})"),
       "f:2: \"tensor\": "},
      {line(R"({"kind": "finite", "tensor": 1, "mode": "TRAIN", "parameters": {}, "support": 1})"),
       "f:2: \"tensor\" is 1; it must be a text"},
      {line(R"({"kind": "finite", "tensor": "x", "mode": "train", "parameters": {}, "support": 1})"),
       "f:2: \"mode\" is \"train\"; allowed: TRAIN, EVAL, PREDICT, GLOBAL"},
      {line(R"({"kind": "finite", "tensor": "x", "mode": "TRAIN", "parameters": {}, "support": -1})"),
       "f:2: \"support\" is -1"},
      {line(R"({"kind": "finite", "tensor": "x", "mode": "TRAIN", "parameters": [], "support": 1})"),
       "f:2: \"parameters\" is []; it must be an object"},
      {line(R"({"kind": "finite", "tensor": "x", "mode": "TRAIN", "parameters": {"low": 1}, "support": 1})"),
       "f:2: no key \"low\""},
      {line(R"({"kind": "range", "tensor": "x", "mode": "TRAIN", "parameters": {"statistic": "mode"}, "support": 1})"),
       "f:2: \"statistic\" is \"mode\"; allowed: min, max, mean, l2"},
      {line(R"({"kind": "ratio", "tensor": "x", "mode": "TRAIN", "parameters": {"low": 2, "high": 1}, "support": 1})"),
       "f:2: \"low\" 2 is above \"high\" 1"},
      {line(
           R"({"kind": "ratio", "tensor": "x", "mode": "TRAIN", "parameters": {"low": "2", "high": 1}, "support": 1})"),
       "f:2: \"low\" is \"2\"; it must be a number"},
      {line(R"({"kind": "shape", "tensor": "x", "mode": "TRAIN", "parameters": {"shape": [-1]}, "support": 1})"),
       "f:2: \"shape\" is [-1]; it must be a list of sizes"},
      {line(R"({"kind": "dtype", "tensor": "x", "mode": "TRAIN", "parameters": {}, "support": 1})"),
       "f:2: \"dtype\" is missing"},
  };
  for (const Case& c : cases) {
    const auto read = Invariants::parse(c.text, "f");
    ASSERT_FALSE(read.ok()) << c.text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid) << c.text;
    EXPECT_EQ(read.error().message.find(c.told), 0U) << read.error().message;
  }
}

TEST(InvariantCheck, TheFileIsRequiredAndMustBeThere) {
  RuleWorld world;
  world.save_series("loss", {1});
  Trial trial = world.open();
  const auto none = make_rule("InvariantCheck", {}, {.base = &trial});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("invariants is missing"), std::string::npos);
  const auto gone = make_rule("InvariantCheck", {{"invariants", "/no/such/file"}}, {.base = &trial});
  ASSERT_FALSE(gone.ok());
  EXPECT_NE(gone.error().message.find("/no/such/file"), std::string::npos);
}

}  // namespace
}  // namespace tornasole::rules
