#include "tools/diff_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/markup.h"
#include "tools/elements.h"

namespace tornasole::tools {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>tornasole diff</title>
<style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; color: #1b1b1b; background: #fff; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3em .7em; border-bottom: 1px solid #ddd; vertical-align: middle; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
tr.d td:first-child { border-left: 4px solid #d55e00; } tr.e td:first-child { border-left: 4px solid #009e73; }
.v { padding: .8em 1em; border-radius: 6px; } .v.d { background: #fdeee3; } .v.e { background: #e5f5ef; }
svg { display: block; } .g { color: #666; }
@media (prefers-color-scheme: dark) {
  body { background: #181a1b; color: #e4e4e4; } th, td { border-color: #444; } .g { color: #aaa; }
  .v.d { background: #46291a; } .v.e { background: #17382e; }
}
</style></head><body>
)";

std::string step_text(const ModeStep& step) { return fmt::format("{} {}", mode_name(step.mode), step.number); }

std::string short_number(double number) {
  return std::isfinite(number) ? fmt::format("{:.3g}", number) : number_text(number);
}

// The largest difference at each step, on a logarithmic scale: differences that matter span many powers of ten.
std::string sparkline(const std::vector<TensorDiff::Point>& points) {
  constexpr double kWidth = 160;
  constexpr double kHeight = 28;
  double low = 0;
  double high = 0;
  bool has_any = false;
  for (const TensorDiff::Point& point : points) {
    if (point.max_abs <= 0 || !std::isfinite(point.max_abs)) continue;
    const double level = std::log10(point.max_abs);
    low = has_any ? std::min(low, level) : level;
    high = has_any ? std::max(high, level) : level;
    has_any = true;
  }
  std::string marks;
  const double span = std::max(high - low, 1.0);
  const double width = kWidth / static_cast<double>(std::max<std::size_t>(points.size(), 1));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double value = points[i].max_abs;
    if (value <= 0) continue;
    const double share = std::isfinite(value) ? 0.15 + 0.85 * (std::log10(value) - low) / span : 1.0;
    const double height = share * kHeight;
    marks += fmt::format(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}"/>)",
                         static_cast<double>(i) * width, kHeight - height, std::max(width, 0.8), height,
                         std::isfinite(value) ? "#0072b2" : "#d55e00");
  }
  const std::string title = points.empty() ? ""
                                           : fmt::format("largest difference at steps {} to {}",
                                                         points.front().global_step, points.back().global_step);
  return fmt::format(R"(<svg width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img"><title>{2}</title>)"
                     R"(<line x1="0" y1="{1}" x2="{0}" y2="{1}" stroke="#999"/>{3}</svg>)",
                     kWidth, kHeight, title, marks);
}

std::string first_text(const FirstDifference& first) {
  std::string place;
  for (const std::int64_t axis : first.index) place += fmt::format("{}{}", place.empty() ? "" : ", ", axis);
  std::string text = fmt::format("<p><code>{}</code>", escape_markup(first.tensor));
  if (first.reduction) text += fmt::format(" (stored {})", reduction_name(*first.reduction));
  if (first.position >= 0) text += fmt::format(" at [{}]", place);
  text += fmt::format(", step {} (global {} in A, {} in B), worker {}", step_text(first.step),
                      first.global_step_a.number, first.global_step_b.number, escape_markup(first.worker_a));
  if (first.worker_b != first.worker_a) text += fmt::format(" in A, {} in B", escape_markup(first.worker_b));
  text += fmt::format(": A has <code>{}</code>, B has <code>{}</code>.</p><p>{}", escape_markup(first.a),
                      escape_markup(first.b), escape_markup(first.what));
  if (first.position >= 0) {
    text += fmt::format("; absolute {}, relative {}", short_number(first.abs), short_number(first.rel));
    if (first.ulp) text += fmt::format(", {} ulp", *first.ulp);
  }
  return text + ".</p>\n";
}

std::string row_text(const TensorDiff& row) {
  return fmt::format(
      R"(<tr class="{}"><td><code>{}</code></td><td>{}</td><td class="n">{}</td><td class="n">{} of {}</td>)"
      R"(<td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td>{}</td><td>{}</td></tr>)"
      "\n",
      row.differs() ? "d" : "e", escape_markup(row.tensor), row.first_step ? step_text(*row.first_step) : "–",
      row.elements_different, row.values_different + row.reductions_different,
      row.values_compared + row.reductions_compared, short_number(row.max_abs), short_number(row.max_rel), row.max_ulp,
      tolerance_text(row.tolerance), sparkline(row.points));
}

std::string mismatch_text(const Mismatch& mismatch) {
  std::string steps;
  for (const ModeStep& step : mismatch.steps) steps += fmt::format("{}{}", steps.empty() ? "" : ", ", step_text(step));
  if (mismatch.step_count > static_cast<std::int64_t>(mismatch.steps.size())) {
    steps += fmt::format(" and {} more", mismatch.step_count - static_cast<std::int64_t>(mismatch.steps.size()));
  }
  return fmt::format("<tr class=\"{}\"><td>{}</td><td><code>{}</code></td><td>{}</td><td>{}</td></tr>\n",
                     mismatch.is_difference ? "d" : "e", mismatch_kind_name(mismatch.kind),
                     escape_markup(mismatch.tensor), escape_markup(mismatch.what), steps);
}

}  // namespace

std::string diff_html(const DiffReport& report) {
  std::string page(kHead);
  page += fmt::format(
      "<h1>A <code>{}</code> against B <code>{}</code></h1>\n<p class=\"g\">A: <code>{}</code><br>B: "
      "<code>{}</code></p>\n",
      escape_markup(report.name_a), escape_markup(report.name_b), escape_markup(report.path_a),
      escape_markup(report.path_b));
  page += fmt::format(
      "<div class=\"v {}\"><strong>{}</strong> {} values and {} stored reductions of {} tensors were "
      "compared, at {} steps.</div>\n",
      report.is_equal ? "e" : "d", report.is_equal ? "Equal." : "Different.", report.values_compared,
      report.reductions_compared, report.tensors.size(), report.steps_compared);
  if (report.first) page += "<h2>First difference</h2>\n" + first_text(*report.first);
  if (!report.tensors.empty()) {
    page +=
        "<h2>Tensors</h2>\n<table><thead><tr><th>tensor</th><th>first step</th><th class=\"n\">elements</th>"
        "<th class=\"n\">values</th><th class=\"n\">max abs</th><th class=\"n\">max rel</th>"
        "<th class=\"n\">max ulp</th><th>tolerance</th><th>over steps</th></tr></thead><tbody>\n";
    std::vector<const TensorDiff*> rows;
    for (const TensorDiff& row : report.tensors) rows.push_back(&row);
    std::ranges::stable_sort(rows, {}, [](const TensorDiff* row) { return !row->differs(); });
    for (const TensorDiff* row : rows) page += row_text(*row);
    page += "</tbody></table>\n";
  }
  if (!report.mismatches.empty()) {
    page += fmt::format(
        "<h2>Not in both, or of another form ({})</h2>\n<table><thead><tr><th>kind</th><th>tensor</th>"
        "<th>what</th><th>steps</th></tr></thead><tbody>\n",
        report.mismatch_count);
    for (const Mismatch& mismatch : report.mismatches) page += mismatch_text(mismatch);
    page += "</tbody></table>\n";
  }
  return page + "</body></html>\n";
}

}  // namespace tornasole::tools
