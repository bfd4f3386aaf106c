// The report about boosted trees as a page for people.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/markup.h"
#include "rules/report_charts.h"
#include "rules/xgboost_report.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>XGBoost training report</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #1b1b1b; background: #fff; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .25em .7em; border-bottom: 1px solid #ddd; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; max-width: 100%; } svg text { font: 11px system-ui, sans-serif; fill: #333; }
.g { color: #666; }
</style></head><body>
)";

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.5g}", value) : "–"; }

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? std::string() : fmt::format("<h2>{}</h2>\n{}", escape_markup(title), body);
}

std::string hyperparameters(const XgboostReport& report) {
  if (report.hyperparameters.empty()) return {};
  std::string rows;
  for (const auto& [name, value] : report.hyperparameters) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape_markup(name), escape_markup(value));
  }
  return "<table>" + rows + "</table>\n";
}

std::string bars_of(const Distribution& distribution) {
  std::vector<ChartBar> bars;
  for (std::size_t i = 0; i < distribution.counts.size(); ++i) {
    bars.push_back({fmt::format("{:.4g} to {:.4g}", distribution.edges[i], distribution.edges[i + 1]),
                    static_cast<double>(distribution.counts[i])});
  }
  return bar_chart(bars) + fmt::format("<p class=\"g\">mean {}, standard deviation {}</p>\n", number(distribution.mean),
                                       number(distribution.deviation));
}

std::string labels(const XgboostReport& report) {
  if (report.pairs.kind == JobKind::kUnknown) return {};
  if (report.pairs.kind == JobKind::kRegression) {
    return bars_of(distribution(report.pairs.labels, label_bins(report.pairs)));
  }
  std::map<double, std::int64_t> counts;
  for (const double label : report.pairs.labels) {
    if (!std::isnan(label)) ++counts[label];
  }
  constexpr std::size_t kMaxBars = 100;
  std::vector<ChartBar> bars;
  for (const auto& [label, count] : counts) {
    if (bars.size() < kMaxBars) bars.push_back({fmt::format("class {}", label), static_cast<double>(count)});
  }
  std::string text = bar_chart(bars);
  if (counts.size() > kMaxBars)
    text += fmt::format("<p class=\"g\">and {} more classes</p>\n", counts.size() - kMaxBars);
  return text;
}

std::string metrics(const XgboostReport& report) {
  // One chart per metric, so that training and validation lie over each other.
  std::map<std::string, std::vector<ChartLine>> charts;
  for (const auto& [name, values] : report.metrics) {
    const std::size_t dash = name.find('-');
    ChartLine line{.name = name};
    for (const auto& [step, value] : values) line.points.emplace_back(static_cast<double>(step), value);
    charts[dash == std::string::npos ? name : name.substr(dash + 1)].push_back(std::move(line));
  }
  std::string text;
  for (const auto& [metric, lines] : charts) text += line_chart({"step", metric}, lines);
  std::string sentences;
  for (const std::string& sentence : report.remarks()) sentences += "<li>" + escape_markup(sentence) + "</li>\n";
  return sentences.empty() ? text : text + "<ul>" + sentences + "</ul>\n";
}

std::string importance(const std::map<std::string, double>& features) {
  std::vector<ChartBar> bars;
  for (const auto& [feature, value] : features) bars.push_back({feature, value});
  std::ranges::stable_sort(bars, std::greater(), &ChartBar::value);
  constexpr std::size_t kMaxBars = 30;
  const std::size_t left_out = bars.size() - std::min(bars.size(), kMaxBars);
  bars.resize(bars.size() - left_out);
  std::string text = bar_chart(bars);
  if (left_out > 0) text += fmt::format("<p class=\"g\">and {} features with less</p>\n", left_out);
  return text;
}

std::string confusion(const ConfusionTable& table) {
  constexpr std::size_t kMaxShown = 30;
  if (table.counts.empty() || table.classes.size() > kMaxShown) {
    return fmt::format("<p>{} classes: too many for a page.</p>\n", table.classes.size());
  }
  std::string text = "<table><tr><th>label \\ prediction</th>";
  for (const double label : table.classes) text += fmt::format("<th class=\"n\">{}</th>", label);
  text += "</tr>\n";
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    text += fmt::format("<tr><th>{}</th>", table.classes[i]);
    double sum = 0;
    for (const std::int64_t count : table.counts[i]) sum += static_cast<double>(count);
    for (std::size_t j = 0; j < table.classes.size(); ++j) {
      const double share = sum == 0 ? 0 : static_cast<double>(table.counts[i][j]) / sum;
      text += fmt::format(R"html(<td class="n" style="background: rgba({}, {:.2f})">{}</td>)html",
                          i == j ? "0, 158, 115" : "213, 94, 0", 0.7 * share, table.counts[i][j]);
    }
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

std::string scores(const ConfusionTable& table) {
  const ClassScores scores = class_scores(table);
  std::string text =
      "<table><tr><th></th><th class=\"n\">precision</th><th class=\"n\">recall</th><th class=\"n\">F1</th>"
      "<th class=\"n\">samples</th></tr>\n";
  const auto row = [&](const std::string& name, const ClassScore& score) {
    text += fmt::format(
        "<tr><td>{}</td><td class=\"n\">{:.4f}</td><td class=\"n\">{:.4f}</td><td class=\"n\">{:.4f}</td>"
        "<td class=\"n\">{}</td></tr>\n",
        name, score.precision, score.recall, score.f1, score.support);
  };
  constexpr std::size_t kMaxShown = 100;
  for (std::size_t i = 0; i < std::min(scores.by_class.size(), kMaxShown); ++i) {
    row(fmt::format("class {}", table.classes[i]), scores.by_class[i]);
  }
  row("micro mean", scores.micro);
  row("macro mean", scores.macro);
  row("weighted mean", scores.weighted);
  return text + "</table>\n";
}

std::string diagonals(const XgboostReport& report) {
  std::map<double, ChartLine> lines;
  for (const auto& [step, shares] : report.diagonals) {
    for (const auto& [label, right] : shares) {
      ChartLine& line = lines[label];
      line.name = fmt::format("class {}", label);
      line.points.emplace_back(static_cast<double>(step), right);
    }
  }
  constexpr std::size_t kMaxLines = 12;
  std::vector<ChartLine> shown;
  for (auto& [label, line] : lines) {
    if (shown.size() < kMaxLines) shown.push_back(std::move(line));
  }
  return line_chart({"step", "share of the class that is right"}, shown);
}

std::string roc(const XgboostReport& report) {
  const RocCurve curve = roc_curve(report.pairs);
  if (curve.points.empty()) return "<p>Only one class is there: no curve.</p>\n";
  const ChartLine lines[] = {{fmt::format("area {:.4f}", curve.area), curve.points}, {"chance", {{0, 0}, {1, 1}}}};
  return line_chart({"share of class 0 taken for 1", "share of class 1 that is found"}, lines);
}

std::string errors(const XgboostReport& report) {
  std::map<std::size_t, ChartLine> lines;
  for (const auto& [step, errors] : report.errors) {
    for (std::size_t i = 0; i < errors.mean_errors.size(); ++i) {
      lines[i].name = fmt::format("labels {:.4g} to {:.4g}", errors.edges[i], errors.edges[i + 1]);
      lines[i].points.emplace_back(static_cast<double>(step), errors.mean_errors[i]);
    }
  }
  std::vector<ChartLine> shown;
  for (auto& [bin, line] : lines) shown.push_back(std::move(line));
  return line_chart({"step", "mean absolute error"}, shown);
}

}  // namespace

std::string xgboost_page(const XgboostReport& report) {
  std::string page(kHead);
  page += fmt::format("<h1>XGBoost training report: {}</h1>\n<p>Kind of job: {}. Last step: {}.</p>\n",
                      escape_markup(report.trial), job_kind_name(report.pairs.kind), report.last_step);
  page += section("Hyperparameters", hyperparameters(report));
  page += section("Labels", labels(report));
  page += section("Metrics", metrics(report));
  for (const auto& [kind, features] : report.importances)
    page += section("Feature importance by " + kind, importance(features));
  if (report.pairs.kind == JobKind::kBinary || report.pairs.kind == JobKind::kMultiClass) {
    const ConfusionTable table = confusion_table(report.pairs);
    page += section("Confusion matrix", confusion(table));
    page += section("Precision, recall and F1", scores(table));
    page += section("Classes over the steps", diagonals(report));
  }
  if (report.pairs.kind == JobKind::kBinary) page += section("Receiver operating characteristic", roc(report));
  if (report.pairs.kind == JobKind::kRegression) {
    page += section("Residuals at the last step", bars_of(distribution(residuals(report.pairs), kResidualBins)));
    page += section("Absolute error by label", errors(report));
  }
  return page + "</body></html>\n";
}

}  // namespace tornasole::rules
