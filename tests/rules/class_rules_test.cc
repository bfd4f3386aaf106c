// ClassImbalance, Confusion.

#include <cmath>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

// So many of each class, one class after the other.
Tensor classes(const std::vector<std::size_t>& counts) {
  std::vector<float> values;
  for (std::size_t label = 0; label < counts.size(); ++label) {
    values.insert(values.end(), counts[label], static_cast<float>(label));
  }
  return floats(std::move(values));
}

TEST(ClassImbalance, WorkedCases) {
  struct Case {
    const char* what;
    Tensor labels, predictions;
    Parameters parameters;
    std::vector<double> values;  // of the violations
  };
  const Case cases[] = {
      {"460 of one class and 40 of the other", classes({460, 40}), classes({460, 40}), {}, {11.5}},
      {"evenly sampled and all right", classes({250, 250}), classes({250, 250}), {}, {}},
      {"too few labels", classes({390, 10}), classes({390, 10}), {}, {}},
      {"a ratio equal to the threshold", classes({460, 46}), classes({460, 46}), {}, {}},
      {"one class only", classes({500}), classes({500}), {}, {INFINITY}},
      {"three quarters of a class are mispredicted", classes({200, 300}), classes({50, 450}), {}, {0.75}},
      {"a share equal to the threshold",
       classes({200, 300}),
       classes({50, 450}),
       {{"threshold_misprediction", "0.75"}},
       {}},
      {"both at once", classes({40, 460}), classes({0, 500}), {}, {11.5, 1}},
      {"predictions are rounded half up",
       floats({0, 0, 1, 1}),
       floats({0.4F, 0.3F, 0.5F, 0.9F}),
       {{"samples", "4"}},
       {}},
      {"as many predictions as labels, or none counts", classes({2, 2}), floats({5, 5}), {{"samples", "4"}}, {}},
      {"scores",
       floats({0, 1, 1, 0}),
       floats({2, 1, 0, 3, 0, 3, 5, 5}, {4, 2}),
       {{"samples", "4"}, {"argmax", "True"}},
       {}},
      {"scores without argmax are too many",
       floats({0, 1, 1, 0}),
       floats({2, 1, 0, 3, 0, 3, 5, 5}, {4, 2}),
       {{"samples", "4"}},
       {}},
      {"labels one-hot like the scores",
       floats({1, 0, 0, 1, 0, 1, 0, 1}, {4, 2}),
       floats({2, 1, 3, 1, 3, 1, 3, 1}, {4, 2}),
       {{"samples", "4"}, {"argmax", "true"}},
       {1}},
      {"labels that are not finite are left out", floats({0, 1, NAN, 0}), floats({0, 1, 0, 0}), {{"samples", "4"}}, {}},
      {"negative labels are classes", floats({-1, -1, 1, 1}), floats({-1, -1, 1, 1}), {{"samples", "4"}}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(3, {{"labels", c.labels}, {"predictions", c.predictions}});
    const RuleOutcome outcome = world.run("ClassImbalance", c.parameters);
    std::vector<double> values;
    for (const Violation& violation : outcome.report.violations()) values.push_back(violation.value.value_or(-1));
    EXPECT_EQ(values, c.values) << c.what;
  }
}

TEST(ClassImbalance, CountsOverStepsAndBeginsAnew) {
  RuleWorld world;
  world.save(0, {{"my_labels", classes({240, 10})}});
  world.save(1, {{"my_labels", classes({240, 10})}});  // 500: 480 to 20
  world.save(2, {{"my_labels", classes({250, 250})}});
  world.save(3, {{"my_labels", classes({990, 10})}});
  EXPECT_EQ(world.met("ClassImbalance"), (Steps{1, 3}));
}

TEST(ClassImbalance, NeitherStatisticsNorReductionsAreLabels) {
  RuleWorld world;
  world.save(0, {{"derived/hash/labels", tools::tensor_of<std::int64_t>({1})}, {reduced("mean", "labels"), scalar(1)}});
  const RuleOutcome outcome = world.run("ClassImbalance", {{"samples", "1"}});
  EXPECT_TRUE(outcome.steps_met.empty());
  EXPECT_EQ(outcome.report.datapoints, 0);
}

TEST(ClassImbalance, EachWorkerHasItsOwnWindow) {
  RuleWorld world({}, {"a", "b"});
  world.save(0, {{"labels", classes({300})}}, {}, "a");
  world.save(0, {{"labels", classes({300})}}, {}, "b");
  EXPECT_TRUE(world.met("ClassImbalance").empty());
  EXPECT_EQ(world.run("ClassImbalance", {{"samples", "300"}}).report.violations_count, 2);
}

TEST(ClassImbalance, LabelsOfAnyType) {
  RuleWorld world;
  world.save(0, {{"labels", tools::tensor_of<std::int64_t>({0, 0, 1})}, {"predictions", floats({0, 0, 0})}});
  EXPECT_EQ(world.met("ClassImbalance", {{"samples", "3"}}), Steps{0});
  RuleWorld texts;
  texts.save(0, {{"labels", Tensor({"a", "b"}, Shape{2})}});
  EXPECT_EQ(texts.run("ClassImbalance", {{"samples", "2"}}).report.skipped.at("text"), 1);
}

const Tensor kTen = floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});

TEST(Confusion, WorkedCases) {
  struct Case {
    const char* what;
    Tensor labels, predictions;
    Parameters parameters;
    std::vector<double> values;
  };
  const Case cases[] = {
      {"all right", kTen, kTen, {}, {}},
      {"4 is taken for 7", kTen, floats({0, 1, 2, 3, 7, 5, 6, 7, 8, 9}), {}, {0.5, 0.5}},
      {"4 is taken for 7, judged by the rest of the column",
       kTen,
       floats({0, 1, 2, 3, 7, 5, 6, 7, 8, 9}),
       {{"min_diag", "0"}, {"max_off_diag", "0.01"}},
       {0.5}},
      {"shares equal to the limits",
       floats({0, 0, 1, 1}),
       floats({0, 0, 0, 0}),
       {{"min_diag", "0.5"}, {"max_off_diag", "0.5"}},
       {}},
      {"a category that is never right", floats({0, 0}), floats({1, 1}), {}, {0, 1}},
      {"numbers are rounded half up", floats({0, 1, 1}), floats({0.49F, 0.5F, 1.2F}), {}, {}},
      {"scores", floats({1, 0}), floats({0, 2, 2, 0}, {2, 2}), {}, {}},
      {"labels one-hot", floats({0, 1, 1, 0}, {2, 2}), floats({1, 0}), {}, {}},
      {"a column of numbers is no table of scores", floats({0, 1}, {2, 1}), floats({0, 1}), {}, {}},
      {"a number of categories that is enough", kTen, kTen, {{"category_no", "10"}}, {}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"labels", c.labels}, {"predictions", c.predictions}});
    const RuleOutcome outcome = world.run("Confusion", c.parameters);
    EXPECT_FALSE(outcome.error.has_value()) << c.what;
    std::vector<double> values;
    for (const Violation& violation : outcome.report.violations()) values.push_back(violation.value.value_or(-1));
    EXPECT_EQ(values, c.values) << c.what;
  }
}

TEST(Confusion, DataItCannotUseIsAnError) {
  struct Case {
    const char* what;
    Tensor labels, predictions;
    Parameters parameters;
    const char* message;
  };
  const Case cases[] = {
      {"different lengths",
       floats({0, 1, 1}),
       floats({0, 1}),
       {},
       "rule Confusion: labels has 3 samples and predictions has 2; both must have as many"},
      {"a category too large",
       floats({0, 1, 2}),
       floats({0, 1, 2}),
       {{"category_no", "2"}},
       "rule Confusion: labels and predictions: category 2 is none of 0 to 1"},
      {"a negative category",
       floats({0, 1}),
       floats({0, -1}),
       {{"category_no", "2"}},
       "rule Confusion: labels and predictions: category -1 is none of 0 to 1"},
      {"NaN",
       floats({NAN}),
       floats({0}),
       {{"category_no", "2"}},
       "rule Confusion: labels and predictions: category nan is none of 0 to 1"},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    world.save(0, {{"labels", c.labels}, {"predictions", c.predictions}});
    world.save(1, {{"labels", floats({0})}, {"predictions", floats({1})}});
    const RuleOutcome outcome = world.run("Confusion", c.parameters);
    ASSERT_TRUE(outcome.error.has_value()) << c.what;
    EXPECT_EQ(outcome.error->message, c.message) << c.what;
    EXPECT_EQ(outcome.error->kind, ErrorKind::kInsufficientInformation) << c.what;
    EXPECT_EQ(outcome.steps_evaluated, 1) << c.what;
    EXPECT_TRUE(outcome.steps_met.empty()) << c.what;
  }
}

TEST(Confusion, ChoosesByNameThenTheFirstOfTheCollection) {
  struct Case {
    const char* what;
    Values values;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"the name goes first",
       {{"labels", floats({0, 1})}, {"label_a", floats({1, 0})}, {"predictions", floats({0, 1})}},
       {},
       false},
      {"another name",
       {{"labels", floats({0, 1})}, {"label_a", floats({1, 0})}, {"predictions", floats({0, 1})}},
       {{"labels", "label_a"}},
       true},
      {"the first of the collection in the order of names",
       {{"label_b", floats({1, 0})}, {"label_a", floats({0, 1})}, {"predictions", floats({0, 1})}},
       {},
       false},
      {"no predictions", {{"labels", floats({0, 1})}}, {}, false},
  };
  for (const Case& c : cases) {
    RuleWorld world(Collections{{"labels", {"^label"}}});
    world.save(0, c.values);
    EXPECT_EQ(world.met("Confusion", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(Confusion, RefusesBadParameters) {
  for (const auto& [name, text] : Parameters{{"category_no", "1"}, {"min_diag", "1.5"}, {"max_off_diag", "-0.1"}}) {
    const auto rule = make_rule("Confusion", {{name, text}}, {});
    ASSERT_FALSE(rule.ok()) << name;
    EXPECT_NE(rule.error().message.find(name + " is \"" + text + "\""), std::string::npos) << rule.error().message;
  }
}

}  // namespace
}  // namespace tornasole::rules
