// SimilarAcrossRuns, CheckInputImages, NLPSequenceRatio.

#include <cmath>

#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

using Parameters = std::map<std::string, std::string>;

TEST(SimilarAcrossRuns, WorkedCases) {
  struct Case {
    const char* what;
    Values here, there;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"0.5 here and 0.6 there", {{"loss", scalar(0.5F)}}, {{"loss", scalar(0.6F)}}, {}, true},
      {"0.5 in both", {{"loss", scalar(0.5F)}}, {{"loss", scalar(0.5F)}}, {}, false},
      {"not saved there", {{"loss", scalar(0.5F)}}, {{"other", scalar(0.6F)}}, {}, false},
      {"a tolerance of one's own", {{"loss", scalar(0.5F)}}, {{"loss", scalar(0.6F)}}, {{"atol", "0.2"}}, false},
      {"NaN in both", {{"loss", scalar(NAN)}}, {{"loss", scalar(NAN)}}, {}, false},
      {"NaN in both, told to differ", {{"loss", scalar(NAN)}}, {{"loss", scalar(NAN)}}, {{"equal_nan", "False"}}, true},
      {"NaN in one", {{"loss", scalar(NAN)}}, {{"loss", scalar(1)}}, {}, true},
      {"another shape", {{"x", filled(1, {2})}}, {{"x", filled(1, {2, 1})}}, {}, true},
      {"another type with the same numbers",
       {{"x", floats({1, 2})}},
       {{"x", tools::tensor_of<double>({1, 2})}},
       {},
       false},
      {"a collection without it",
       {{"x", scalar(1)}, {"loss", scalar(1)}},
       {{"x", scalar(2)}, {"loss", scalar(1)}},
       {{"collection_names", "losses"}},
       false},
      {"a pattern", {{"x", scalar(1)}}, {{"x", scalar(2)}}, {{"tensor_regex", "x"}}, true},
      {"a pattern by its older name",
       {{"x", scalar(1)}, {"y", scalar(1)}},
       {{"x", scalar(2)}, {"y", scalar(1)}},
       {{"include_regex", "y"}},
       false},
  };
  for (const Case& c : cases) {
    RuleWorld other;
    other.save(10, c.there);
    const Trial before = other.open();
    RuleWorld world;
    world.save(10, c.here);
    EXPECT_EQ(world.run("SimilarAcrossRuns", c.parameters, {}, {&before}).steps_met, c.is_met ? Steps{10} : Steps{})
        << c.what;
  }
}

TEST(SimilarAcrossRuns, WhatTheOtherRunHasNotIsListed) {
  RuleWorld other;
  other.save(0, {{"x", scalar(1)}, {"y", scalar(1)}});
  other.save(1, {{"x", scalar(1)}});
  const Trial before = other.open();
  RuleWorld world;
  for (const std::int64_t step : {0, 1, 2}) {
    world.save(step, {{"x", scalar(1)}, {"y", scalar(1)}, {"z", scalar(1)}});
  }
  const RuleOutcome outcome = world.run("SimilarAcrossRuns", {}, {}, {&before});
  EXPECT_TRUE(outcome.steps_met.empty());
  EXPECT_EQ(outcome.report.datapoints, 3);
  EXPECT_EQ(outcome.report.details.at("missing_tensors"), "[\"z\"]");
  EXPECT_EQ(outcome.report.details.at("missing_steps"), "[2]");
  EXPECT_EQ(outcome.report.details.at("missing_values"), "{\"y\": 1}");
}

TEST(SimilarAcrossRuns, WorkersAreComparedByNameAndSingleOnesWhateverTheirNames) {
  RuleWorld other({}, {"one"});
  other.save(0, {{"x", scalar(1)}}, {}, "one");
  const Trial before = other.open();
  RuleWorld single({}, {"two"});
  single.save(0, {{"x", scalar(2)}}, {}, "two");
  EXPECT_EQ(single.run("SimilarAcrossRuns", {}, {}, {&before}).steps_met, Steps{0});
  RuleWorld several({}, {"one", "two"});
  several.save(0, {{"x", scalar(1)}}, {}, "one");
  several.save(0, {{"x", scalar(2)}}, {}, "two");
  EXPECT_TRUE(several.run("SimilarAcrossRuns", {}, {}, {&before}).steps_met.empty());
}

TEST(SimilarAcrossRuns, ComparesWithExactlyOneOther) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  const auto none = make_rule("SimilarAcrossRuns", {}, {.base = &trial});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kInsufficientInformation);
  EXPECT_FALSE(make_rule("SimilarAcrossRuns", {}, {.base = &trial, .others = {&trial, &trial}}).ok());
}

constexpr const char* kImages = "net_hybridsequential0_input_0";

// Two channels of one pixel each: of `count` images.
Tensor two_channels(float first, float second, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.insert(values.end(), {first, second});
  return floats(values, {count, 2, 1, 1});
}

TEST(CheckInputImages, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<Tensor> images;  // step by step
    Parameters parameters;
    Steps met;
  };
  const Case cases[] = {
      {"500 images of 0.5", {filled(0.5F, {500, 1, 2, 2})}, {}, {0}},
      {"250 of 1 and 250 of -1", {filled(1, {250, 1, 2, 2}), filled(-1, {250, 1, 2, 2})}, {}, {}},
      {"499 images are too few", {filled(0.5F, {499, 1, 2, 2})}, {}, {}},
      {"images add up over steps", {filled(0.5F, {300, 1, 2, 2}), filled(0.5F, {300, 1, 2, 2})}, {}, {1}},
      {"after a verdict counting begins again",
       {filled(0.5F, {500, 1, 1, 1}), filled(0.5F, {499, 1, 1, 1}), filled(0.5F, {1, 1, 1, 1})},
       {},
       {0, 2}},
      {"a mean equal to the threshold is allowed", {filled(0.5F, {500, 1, 2, 2})}, {{"threshold_mean", "0.5"}}, {}},
      {"negative means count too", {filled(-0.5F, {500, 1, 2, 2})}, {}, {0}},
      {"one channel is enough", {two_channels(0, 1, 500)}, {}, {0}},
      {"channels do not make up for each other", {two_channels(-1, 1, 500)}, {}, {0}},
      {"pooled they would", {two_channels(-1, 1, 500)}, {{"channel", "3"}}, {}},
      {"without a channel axis there is one channel", {filled(0.5F, {500})}, {}, {0}},
      {"other channels are other images", {filled(0.5F, {400, 1, 1, 1}), filled(0.5F, {400, 3, 1, 1})}, {}, {}},
      {"NaN has no mean", {filled(NAN, {500, 1, 1, 1})}, {}, {}},
      {"fewer images may be asked for", {filled(0.5F, {8, 1, 1, 1})}, {{"threshold_samples", "8"}}, {0}},
      {"another name", {filled(0.5F, {500, 1, 1, 1})}, {{"regex", "pixels"}}, {}},
      {"bytes", {tools::tensor_of<std::uint8_t>(std::vector<std::uint8_t>(500, 128), {500, 1})}, {}, {0}},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    for (std::size_t i = 0; i < c.images.size(); ++i) {
      world.save(static_cast<std::int64_t>(i), {{kImages, c.images[i]}});
    }
    EXPECT_EQ(world.met("CheckInputImages", c.parameters), c.met) << c.what;
  }
}

TEST(CheckInputImages, WorkersDoNotAddUp) {
  RuleWorld world({}, {"a", "b"});
  world.save(0, {{kImages, filled(0.5F, {250, 1, 1, 1})}}, {}, "a");
  world.save(0, {{kImages, filled(0.5F, {250, 1, 1, 1})}}, {}, "b");
  EXPECT_TRUE(world.met("CheckInputImages").empty());
  Trial trial = world.open();
  EXPECT_FALSE(make_rule("CheckInputImages", {{"channel", "-1"}}, {.base = &trial}).ok());
}

constexpr const char* kTokens = "bert_embedding0_input_0";

TEST(NlpSequenceRatio, WorkedCases) {
  struct Case {
    const char* what;
    std::vector<std::int64_t> tokens;
    Parameters parameters;
    bool is_met;
  };
  const Case cases[] = {
      {"75 % zeros", {5, 0, 0, 0, 7, 0, 0, 0}, {}, true},
      {"37.5 % zeros", {5, 6, 0, 0, 7, 8, 9, 0}, {}, false},
      {"half is not more than half", {5, 6, 0, 0}, {}, false},
      {"another token", {3, 3, 3, 1}, {{"token_values", "3"}}, true},
      {"the second of two tokens",
       {3, 3, 1, 0},
       {{"token_values", "0,3"}, {"token_thresholds_percent", "50, 49"}},
       true},
      {"each has its own threshold",
       {3, 3, 1, 0},
       {{"token_values", "0,3"}, {"token_thresholds_percent", "50, 50"}},
       false},
  };
  for (const Case& c : cases) {
    RuleWorld world;
    const auto count = static_cast<std::int64_t>(c.tokens.size());
    world.save(0, {{kTokens, tools::tensor_of(c.tokens, Shape{2, count / 2})}});
    EXPECT_EQ(world.met("NLPSequenceRatio", c.parameters), c.is_met ? Steps{0} : Steps{}) << c.what;
  }
}

TEST(NlpSequenceRatio, AsManyThresholdsAsTokens) {
  RuleWorld world;
  world.save(0, {{"loss", scalar(1)}});
  Trial trial = world.open();
  const auto made = make_rule("nlp_sequence_ratio", {{"token_values", "0,1"}}, {.base = &trial});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message,
            "rule NLPSequenceRatio: token_values has 2 numbers and token_thresholds_percent has 1; it must be as many");
}

}  // namespace
}  // namespace tornasole::rules
