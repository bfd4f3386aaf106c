// CreateXgboostReport: the kind of job, the numbers of each section, and a page that is safe to open.

#include <cmath>

#include "base/json.h"
#include "rules/report_charts.h"
#include "rules/rule_world.h"
#include "rules/xgboost_report.h"

namespace tornasole::rules {
namespace {

TEST(XgboostNumbers, KindOfJob) {
  struct Case {
    const char* what;
    Tensor labels, predictions;
    JobKind kind;
  };
  const Case cases[] = {
      {"labels 0 and 1", floats({0, 1}), floats({0.2F, 0.9F}), JobKind::kBinary},
      {"labels between whole numbers", floats({1.5F, 2.7F}), floats({1, 2}), JobKind::kRegression},
      {"scores per class", floats({0, 1}), filled(0.5F, {2, 3}), JobKind::kMultiClass},
      {"three whole labels and whole predictions", floats({0, 1, 2}), floats({0, 2, 2}), JobKind::kMultiClass},
      {"three whole labels, but predictions between", floats({0, 1, 2}), floats({0.5F, 1, 2}), JobKind::kRegression},
      {"two whole labels that are not 0 and 1", floats({3, 4}), floats({3, 4}), JobKind::kRegression},
      {"a column of scores is binary, too", floats({0, 1}), floats({0.2F, 0.9F}, {2, 1}), JobKind::kBinary},
      {"one-hot labels", floats({1, 0, 0, 1}, {2, 2}), floats({1, 0, 0, 1}, {2, 2}), JobKind::kMultiClass},
      {"different lengths", floats({0, 1, 1}), floats({0.2F, 0.9F}), JobKind::kUnknown},
      {"no elements", floats({}), floats({}), JobKind::kUnknown},
      {"texts", Tensor({"a"}, Shape{1}), floats({1}), JobKind::kUnknown},
  };
  for (const Case& c : cases) EXPECT_EQ(make_pairs(c.labels, c.predictions).kind, c.kind) << c.what;
}

TEST(XgboostNumbers, ScoresOfClasses) {
  // Labels 0 0 0 1 1 2, predictions 0 0 1 1 1 1.
  const auto pairs = make_pairs(floats({0, 0, 0, 1, 1, 2}), floats({0, 0, 1, 1, 1, 1}));
  ASSERT_EQ(pairs.kind, JobKind::kMultiClass);
  const ConfusionTable table = confusion_table(pairs);
  EXPECT_EQ(table.classes, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(table.counts, (std::vector<std::vector<std::int64_t>>{{2, 1, 0}, {0, 2, 0}, {0, 1, 0}}));
  EXPECT_EQ(diagonal(table), (std::vector<double>{2.0 / 3, 1, 0}));
  const ClassScores scores = class_scores(table);
  EXPECT_DOUBLE_EQ(scores.by_class[0].precision, 1);
  EXPECT_DOUBLE_EQ(scores.by_class[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.by_class[0].f1, 0.8);
  EXPECT_DOUBLE_EQ(scores.by_class[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(scores.by_class[2].f1, 0);
  EXPECT_DOUBLE_EQ(scores.micro.precision, 4.0 / 6);
  EXPECT_DOUBLE_EQ(scores.macro.precision, 0.5);
  EXPECT_DOUBLE_EQ(scores.macro.recall, 5.0 / 9);
  EXPECT_NEAR(scores.weighted.precision, (3 * 1 + 2 * 0.5) / 6, 1e-12);
  EXPECT_NEAR(scores.weighted.recall, 4.0 / 6, 1e-12);
}

TEST(XgboostNumbers, RocCurve) {
  struct Case {
    const char* what;
    std::vector<float> labels, scores;
    double area;
    std::size_t points;
  };
  const Case cases[] = {
      {"told apart", {0, 0, 1, 1}, {0.1F, 0.2F, 0.8F, 0.9F}, 1, 5},
      {"the wrong way round", {1, 1, 0, 0}, {0.1F, 0.2F, 0.8F, 0.9F}, 0, 5},
      {"three of four pairs", {0, 1, 0, 1}, {0.1F, 0.2F, 0.3F, 0.4F}, 0.75, 5},
      {"equal scores are one point", {0, 1, 0, 1}, {0.5F, 0.5F, 0.5F, 0.5F}, 0.5, 2},
      {"one class only", {1, 1}, {0.5F, 0.6F}, 0, 0},
      {"NaN is left out", {0, 1, 1}, {0.1F, 0.9F, NAN}, 1, 3},
  };
  for (const Case& c : cases) {
    const RocCurve curve = roc_curve(make_pairs(floats(c.labels), floats(c.scores)));
    EXPECT_DOUBLE_EQ(curve.area, c.area) << c.what;
    EXPECT_EQ(curve.points.size(), c.points) << c.what;
  }
}

TEST(XgboostNumbers, DistributionsAndErrors) {
  const Distribution residual = distribution(std::vector<double>{0, 1, 2, 3, NAN}, 3);
  EXPECT_EQ(residual.edges, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(residual.counts, (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_DOUBLE_EQ(residual.mean, 1.5);
  EXPECT_DOUBLE_EQ(residual.deviation, std::sqrt(1.25));
  EXPECT_EQ(residual.not_finite, 1);
  EXPECT_EQ(distribution(std::vector<double>{7, 7}, 1).counts, std::vector<std::int64_t>{2});
  EXPECT_TRUE(distribution(std::vector<double>{NAN}, 4).counts.empty());

  const BinnedErrors errors = binned_errors(make_pairs(floats({0.5F, 10.5F, 10.5F}), floats({1.5F, 10, 8.5F})));
  ASSERT_EQ(errors.mean_errors.size(), 10U);
  EXPECT_DOUBLE_EQ(errors.mean_errors.front(), 1);
  EXPECT_DOUBLE_EQ(errors.mean_errors.back(), 1.25);
  EXPECT_TRUE(std::isnan(errors.mean_errors[5]));
}

class ReportRun {
 public:
  explicit ReportRun(RuleWorld* world) {
    Trial trial = world->open();
    auto rule = make_rule("CreateXgboostReport", {}, {.base = &trial});
    EXPECT_TRUE(rule.ok());
    RuleRunner runner(&trial);
    runner.add(std::move(*rule));
    EXPECT_TRUE(runner.run().ok());
    EXPECT_TRUE(runner.outcome(0).steps_met.empty());
    const auto files = runner.rule(0).files();
    EXPECT_EQ(files.size(), 2U);
    page = files.at("xgboost_report.html");
    auto parsed = parse_json(files.at("xgboost_report.json"));
    EXPECT_TRUE(parsed.ok());
    if (parsed.ok()) json = std::move(*parsed);
  }
  std::string page;
  Json json;
};

const std::map<std::string, std::vector<std::string>> kCollections = {
    {"hyperparameters", {"^hyperparameters/"}},
    {"metrics", {"^[a-z0-9_]+-[a-z]+$"}},
    {"feature_importance", {"^feature_importance/"}},
    {"labels", {"^labels$"}},
    {"predictions", {"^predictions$"}},
};

TEST(XgboostReport, EachKindHasItsSections) {
  struct Case {
    const char* kind;
    Tensor labels, predictions;
    std::vector<const char*> sections, others;
  };
  const Case cases[] = {
      {"binary",
       floats({0, 1}),
       floats({0.2F, 0.9F}),
       {"Labels", "Confusion matrix", "Precision, recall and F1", "Classes over the steps",
        "Receiver operating characteristic"},
       {"Residuals", "Absolute error"}},
      {"multiclass",
       floats({0, 1, 2}),
       filled(0.5F, {3, 3}),
       {"Labels", "Confusion matrix", "Precision, recall and F1", "Classes over the steps"},
       {"Receiver", "Residuals", "Absolute error"}},
      {"regression",
       floats({1.5F, 2.7F}),
       floats({1, 2}),
       {"Labels", "Residuals at the last step", "Absolute error by label"},
       {"Receiver", "Confusion"}},
      {"unknown", floats({1, 2}), floats({1}), {"Metrics"}, {"Labels", "Confusion", "Residuals"}},
  };
  for (const Case& c : cases) {
    RuleWorld world(kCollections);
    for (const std::int64_t step : {0, 5}) {
      world.save(step,
                 {{"labels", c.labels},
                  {"predictions", c.predictions},
                  {"train-rmse", scalar(step == 0 ? 2.0F : 1.0F)},
                  {"validation-rmse", scalar(step == 0 ? 2.0F : 1.5F)},
                  {"feature_importance/gain/f0", scalar(0.25F)}},
                 ModeStep{Mode::kGlobal, step});
    }
    const ReportRun run(&world);
    EXPECT_EQ(*run.json.find("kind")->as_string(), c.kind);
    for (const char* section : c.sections) {
      EXPECT_NE(run.page.find("<h2>" + std::string(section)), std::string::npos) << c.kind << ": " << section;
    }
    for (const char* section : c.others) {
      EXPECT_EQ(run.page.find("<h2>" + std::string(section)), std::string::npos) << c.kind << ": " << section;
    }
    EXPECT_NE(run.page.find("<h2>Feature importance by gain"), std::string::npos) << c.kind;
    EXPECT_EQ(run.json.find("feature_importance")->find("gain")->find("f0")->to_message(), "0.25") << c.kind;
  }
}

TEST(XgboostReport, Remarks) {
  struct Case {
    const char* what;
    std::map<std::string, std::vector<float>> metrics;
    std::vector<const char*> words;  // one per remark, in order
  };
  const Case cases[] = {
      {"both fall together",
       {{"train-rmse", {2, 1}}, {"test-rmse", {2, 1.05F}}},
       {"test-rmse fell", "train-rmse fell"}},
      {"validation rises again", {{"test-rmse", {2, 1, 1.5F}}}, {"overfit"}},
      {"training hardly falls", {{"train-rmse", {2, 1.99F}}}, {"underfits"}},
      {"a wide gap",
       {{"train-rmse", {2, 1}}, {"test-rmse", {2, 1.5F}}},
       {"test-rmse fell", "50 % above", "train-rmse fell"}},
      {"more is better for an area", {{"train-auc", {0.5F, 0.9F}}}, {}},
      {"one value says nothing", {{"train-rmse", {2}}}, {}},
  };
  for (const Case& c : cases) {
    XgboostReport report;
    for (const auto& [name, values] : c.metrics) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        report.metrics[name].emplace_back(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
      }
    }
    const auto remarks = report.remarks();
    ASSERT_EQ(remarks.size(), c.words.size()) << c.what;
    for (std::size_t i = 0; i < remarks.size(); ++i) {
      EXPECT_NE(remarks[i].find(c.words[i]), std::string::npos) << c.what << ": " << remarks[i];
    }
  }
}

TEST(XgboostReport, ThePageStandsAloneAndObeysNoText) {
  RuleWorld world(Collections{{"hyperparameters", {"^hyperparameters/"}},
                              {"metrics", {"rmse"}},
                              {"feature_importance", {"^feature_importance/"}}});
  world.save(0,
             {{"hyperparameters/<script>alert(1)</script>", Tensor({"\"><img src=http://x>"}, Shape{1})},
              {"train-<b>rmse", scalar(1)},
              {"feature_importance/gain/<i>f0", scalar(1)}},
             ModeStep{Mode::kGlobal, 0});
  world.save(1, {{"train-<b>rmse", scalar(NAN)}}, ModeStep{Mode::kGlobal, 1});
  const ReportRun run(&world);
  for (const char* markup : {"<script", "<img", "<b>", "<i>", "href=", "url(", "@import"}) {
    EXPECT_EQ(run.page.find(markup), std::string::npos) << markup;
  }
  EXPECT_NE(run.page.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos);
  EXPECT_NE(run.page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(run.page.find("nan"), std::string::npos);
  EXPECT_EQ(run.json.find("kind")->to_message(), "\"unknown\"");
}

TEST(XgboostReport, AnEmptyTrialHasAnEmptyReport) {
  RuleWorld world(kCollections);
  world.save(0, {{"something", scalar(1)}});
  const ReportRun run(&world);
  EXPECT_EQ(*run.json.find("last_step")->as_int(), -1);
  EXPECT_TRUE(run.page.ends_with("</body></html>\n"));
}

TEST(ReportCharts, PointsThatAreNotFiniteAreLeftOut) {
  const ChartLine lines[] = {{"a", {{0, 1}, {1, NAN}, {2, INFINITY}, {3, 2}}}};
  const std::string svg = line_chart({"x", "y"}, lines);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  const ChartLine nothing[] = {{"a", {{0, NAN}}}};
  EXPECT_TRUE(line_chart({"x", "y"}, nothing).empty());
  const ChartLine huge[] = {{"a", {{0, -1e308}, {1, 1e308}}}};
  EXPECT_EQ(line_chart({"x", "y"}, huge).find("inf"), std::string::npos);
}

}  // namespace
}  // namespace tornasole::rules
