#include "rules/xgboost_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"

namespace tornasole::rules {
namespace {

// Of these, more is better; they say nothing as a loss.
constexpr std::array<std::string_view, 6> kRising = {"auc", "map", "ndcg",
                                                     "pre", "acc", "interval-regression-accuracy"};

bool is_loss(std::string_view metric) {
  return std::ranges::none_of(kRising, [&](std::string_view start) { return metric.starts_with(start); });
}

bool is_training(std::string_view name) { return name.starts_with("train"); }

XgboostReport::BySteps<double> finite_ones(XgboostReport::BySteps<double> values) {
  std::erase_if(values, [](const auto& value) { return !std::isfinite(value.second); });
  return values;
}

std::string remark_about(const std::string& name, const XgboostReport::BySteps<double>& values) {
  const auto [first_step, first] = values.front();
  const auto [last_step, last] = values.back();
  const auto best = std::ranges::min_element(values, {}, [](const auto& value) { return value.second; });
  constexpr double kNoise = 0.01;  // of the value: less is not worth a remark
  const double scale = std::max(std::fabs(best->second), 1e-12);
  if (!is_training(name) && last - best->second > kNoise * scale) {
    return fmt::format(
        "{} was best at step {} ({:.5g}) and is {:.5g} at step {}: the rounds since then overfit; stop "
        "early or regularise.",
        name, best->first, best->second, last, last_step);
  }
  if (first - last <= kNoise * std::max(std::fabs(first), 1e-12)) {
    return fmt::format(
        "{} hardly fell: {:.5g} at step {}, {:.5g} at step {}: the model underfits; more depth, more "
        "rounds or a larger eta may help.",
        name, first, first_step, last, last_step);
  }
  return fmt::format("{} fell from {:.5g} at step {} to {:.5g} at step {}.", name, first, first_step, last, last_step);
}

void write_numbers(JsonWriter& json, const std::vector<double>& numbers) {
  json.begin_array();
  for (const double number : numbers) json.value(number);
  json.end_array();
}

void write_score(JsonWriter& json, const ClassScore& score) {
  json.key("precision").value(score.precision).key("recall").value(score.recall).key("f1").value(score.f1);
  json.key("support").value(score.support);
}

void write_distribution(JsonWriter& json, const Distribution& distribution) {
  json.begin_object().key("edges");
  write_numbers(json, distribution.edges);
  json.key("counts").begin_array();
  for (const std::int64_t count : distribution.counts) json.value(count);
  json.end_array().key("mean").value(distribution.mean).key("deviation").value(distribution.deviation);
  json.key("not_finite").value(distribution.not_finite).end_object();
}

void write_classification(JsonWriter& json, const XgboostReport& report) {
  const ConfusionTable table = confusion_table(report.pairs);
  const ClassScores scores = class_scores(table);
  json.key("confusion_matrix").begin_object().key("classes");
  write_numbers(json, table.classes);
  json.key("counts").begin_array();
  for (const auto& row : table.counts) {
    json.begin_array();
    for (const std::int64_t count : row) json.value(count);
    json.end_array();
  }
  json.end_array().end_object().key("scores").begin_object().key("by_class").begin_array();
  for (std::size_t i = 0; i < scores.by_class.size(); ++i) {
    json.begin_object().key("class").value(table.classes[i]);
    write_score(json, scores.by_class[i]);
    json.end_object();
  }
  json.end_array();
  const std::pair<const char*, const ClassScore*> means[] = {
      {"micro", &scores.micro}, {"macro", &scores.macro}, {"weighted", &scores.weighted}};
  for (const auto& [name, score] : means) {
    json.key(name).begin_object();
    write_score(json, *score);
    json.end_object();
  }
  json.end_object().key("diagonal").begin_array();
  for (const auto& [step, shares] : report.diagonals) {
    json.begin_object().key("step").value(step).key("right").begin_object();
    for (const auto& [label, right] : shares) json.key(fmt::format("{}", label)).value(right);
    json.end_object().end_object();
  }
  json.end_array();
  if (report.pairs.kind != JobKind::kBinary) return;
  const RocCurve curve = roc_curve(report.pairs);
  json.key("roc").begin_object().key("area");
  curve.points.empty() ? json.null() : json.value(curve.area);
  json.key("points").begin_array();
  for (const auto& [alarms, hits] : curve.points) json.begin_array().value(alarms).value(hits).end_array();
  json.end_array().end_object();
}

void write_regression(JsonWriter& json, const XgboostReport& report) {
  json.key("residuals");
  write_distribution(json, distribution(residuals(report.pairs), kResidualBins));
  json.key("absolute_error_by_label").begin_array();
  for (const auto& [step, errors] : report.errors) {
    json.begin_object().key("step").value(step).key("edges");
    write_numbers(json, errors.edges);
    json.key("mean_errors");
    write_numbers(json, errors.mean_errors);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::vector<std::string> XgboostReport::remarks() const {
  std::vector<std::string> sentences;
  for (const auto& [name, all_values] : metrics) {
    const std::size_t dash = name.find('-');
    const std::string metric = dash == std::string::npos ? name : name.substr(dash + 1);
    const BySteps<double> values = finite_ones(all_values);
    if (!is_loss(metric) || values.size() < 2) continue;
    sentences.push_back(remark_about(name, values));
    if (is_training(name)) continue;
    const auto training = metrics.find("train-" + metric);
    if (training == metrics.end() || training->second.empty() || training->second.back().second == 0) continue;
    const double own = training->second.back().second;
    const double gap = (values.back().second - own) / std::fabs(own);
    constexpr double kWide = 0.1;
    if (gap > kWide) {
      sentences.push_back(
          fmt::format("{} ends {:.3g} % above {}: the model knows its training data better than new data.", name,
                      100 * gap, training->first));
    }
  }
  return sentences;
}

std::string XgboostReport::to_json() const {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("trial").value(trial).key("last_step").value(last_step);
  json.key("kind").value(job_kind_name(pairs.kind)).key("hyperparameters").begin_object();
  for (const auto& [name, value] : hyperparameters) json.key(name).value(value);
  json.end_object().key("metrics").begin_object();
  for (const auto& [name, values] : metrics) {
    json.key(name).begin_array();
    for (const auto& [step, value] : values) json.begin_array().value(step).value(value).end_array();
    json.end_array();
  }
  json.end_object().key("remarks").begin_array();
  for (const std::string& sentence : remarks()) json.value(sentence);
  json.end_array().key("feature_importance").begin_object();
  for (const auto& [kind, features] : importances) {
    json.key(kind).begin_object();
    for (const auto& [feature, value] : features) json.key(feature).value(value);
    json.end_object();
  }
  json.end_object();
  if (pairs.kind != JobKind::kUnknown) {
    json.key("labels");
    write_distribution(json, distribution(pairs.labels, label_bins(pairs)));
    pairs.kind == JobKind::kRegression ? write_regression(json, *this) : write_classification(json, *this);
  }
  json.end_object();
  return text;
}

}  // namespace tornasole::rules
