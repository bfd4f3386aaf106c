#include "tools/diff_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "pattern/limit_report.h"
#include "tools/elements.h"

namespace tornasole::tools {
namespace {

constexpr std::size_t kMaxSteps = 20;  // of one mismatch
constexpr std::size_t kMaxTextBytes = 200;

// Neighbours become one, with the larger difference of the two.
void thin(std::vector<TensorDiff::Point>* points) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points->size(); i += 2) {
    TensorDiff::Point point = (*points)[i];
    if (i + 1 < points->size() && (*points)[i + 1].max_abs > point.max_abs) point = (*points)[i + 1];
    (*points)[kept++] = point;
  }
  points->resize(kept);
}

void add_point(std::int64_t global_step, double max_abs, std::vector<TensorDiff::Point>* points) {
  if (!points->empty() && points->back().global_step == global_step) {
    points->back().max_abs = std::max(points->back().max_abs, max_abs);
    return;
  }
  if (points->size() >= 2 * TensorDiff::kMaxPoints) thin(points);
  points->push_back({global_step, max_abs});
}

bool is_about_existence(MismatchKind kind) {
  return kind == MismatchKind::kNameOnlyInA || kind == MismatchKind::kNameOnlyInB ||
         kind == MismatchKind::kStepsOnlyInA || kind == MismatchKind::kStepsOnlyInB || kind == MismatchKind::kWorkers ||
         kind == MismatchKind::kForm;
}

std::string short_text(std::string text) {
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  return text;
}

}  // namespace

Result<DiffTable> DiffTable::make(const DiffOptions& options) {
  DiffTable table(options);
  for (const ToleranceRule& rule : options.rules) {
    TORNASOLE_TRY(pattern::Pattern compiled, pattern::Pattern::compile(rule.pattern));
    table.rules_.emplace_back(std::move(compiled), rule.tolerance);
  }
  return table;
}

TensorDiff& DiffTable::row_of(std::string_view tensor) {
  const auto found = rows_.find(tensor);
  if (found != rows_.end()) return found->second;
  TensorDiff row{.tensor = std::string(tensor), .tolerance = options_.tolerance};
  const auto rule = std::ranges::find_if(rules_, [&](const auto& one) {
    const pattern::Match match = one.first.search(tensor);
    if (match == pattern::Match::kLimit && status_.ok()) {
      status_ = invalid_error("diff: {}", pattern::limit_report(one.first, tensor));
    }
    return match == pattern::Match::kYes;
  });
  if (rule != rules_.end()) row.tolerance = rule->second;
  return rows_.emplace(row.tensor, std::move(row)).first->second;
}

const Tolerance& DiffTable::tolerance_of(std::string_view tensor) { return row_of(tensor).tolerance; }

bool DiffTable::check_form(const ComparedPair& pair, const Tensor& a, const Tensor& b, bool* is_different) {
  const auto differ = [&](MismatchKind kind, std::string in_a, std::string in_b) {
    const std::string what = fmt::format("{} in A, {} in B", in_a, in_b);
    add_mismatch(kind, pair.tensor, pair.step, what);
    *is_different = true;
    note_first(pair, {.position = -1, .a = std::move(in_a), .b = std::move(in_b), .what = what});
  };
  if (a.dtype() != b.dtype() && !options_.ignore_dtype) {
    differ(MismatchKind::kDtype, std::string(dtype_name(a.dtype())), std::string(dtype_name(b.dtype())));
  }
  // A number of shape [1] is as good as one of no dimensions.
  const bool are_scalars =
      a.element_count() == 1 && b.element_count() == 1 && a.shape().rank() <= 1 && b.shape().rank() <= 1;
  if (a.shape() == b.shape() || are_scalars) return true;
  differ(MismatchKind::kShape, a.shape().to_string(), b.shape().to_string());
  return false;
}

void DiffTable::add(const ComparedPair& pair, const Tensor& a, const Tensor& b) {
  TensorDiff& row = row_of(pair.tensor);
  bool is_different = false;
  double max_abs = 0;
  if (check_form(pair, a, b, &is_different)) {
    const Comparison found = compare_values(a, b, row.tolerance);
    row.elements_different += found.elements_different;
    row.max_abs = std::max(row.max_abs, found.max_abs);
    row.max_rel = std::max(row.max_rel, found.max_rel);
    row.max_ulp = std::max(row.max_ulp, found.max_ulp);
    max_abs = found.max_abs;
    if (found.first) {
      is_different = true;
      FirstDifference difference{.position = *found.first,
                                 .index = index_of(a.shape(), *found.first),
                                 .a = short_text(element_text(a, *found.first)),
                                 .b = short_text(element_text(b, *found.first)),
                                 .abs = found.first_gap.abs,
                                 .rel = found.first_gap.rel,
                                 .ulp = found.first_gap.ulp};
      if (!found.first_gap.is_comparable) difference.abs = difference.rel = std::numeric_limits<double>::quiet_NaN();
      difference.what = fmt::format("{} of {} elements differ by more than {}", found.elements_different,
                                    a.element_count(), tolerance_text(row.tolerance));
      note_first(pair, std::move(difference));
    }
  } else {
    max_abs = row.max_abs = row.max_rel = std::numeric_limits<double>::infinity();
  }
  add_point(pair.global_step_a.number, max_abs, &row.points);
  ++(pair.reduction ? row.reductions_compared : row.values_compared);
  if (!is_different) return;
  is_equal_ = false;
  ++(pair.reduction ? row.reductions_different : row.values_different);
  if (!row.first_step) row.first_step = pair.step;
}

void DiffTable::note_first(const ComparedPair& pair, FirstDifference difference) {
  if (first_) return;
  difference.tensor = pair.tensor;
  difference.global_step_a = pair.global_step_a;
  difference.global_step_b = pair.global_step_b;
  difference.step = pair.step;
  difference.worker_a = pair.worker_a;
  difference.worker_b = pair.worker_b;
  difference.reduction = pair.reduction;
  difference.tolerance = tolerance_of(pair.tensor);
  first_ = std::move(difference);
}

void DiffTable::add_mismatch(MismatchKind kind, std::string_view tensor, std::optional<ModeStep> step,
                             std::string_view what) {
  const bool is_difference = !(options_.ignore_missing && is_about_existence(kind));
  if (is_difference) is_equal_ = false;
  const auto key = std::pair(kind, std::string(tensor));
  auto found = mismatches_.find(key);
  if (found == mismatches_.end()) {
    ++mismatch_count_;
    if (mismatches_.size() >= DiffReport::kMaxMismatches) return;
    Mismatch mismatch{.kind = kind,
                      .tensor = std::string(tensor),
                      .what = short_text(std::string(what)),
                      .is_difference = is_difference};
    found = mismatches_.emplace(key, std::move(mismatch)).first;
  }
  if (!step) return;
  ++found->second.step_count;
  if (found->second.steps.size() < kMaxSteps) found->second.steps.push_back(*step);
}

Status DiffTable::finish(DiffReport* report) {
  TORNASOLE_CHECK(status_);
  report->first = std::move(first_);
  for (auto& [name, row] : rows_) {
    if (row.values_compared == 0 && row.reductions_compared == 0) continue;
    while (row.points.size() > TensorDiff::kMaxPoints) thin(&row.points);
    report->values_compared += row.values_compared;
    report->reductions_compared += row.reductions_compared;
    report->tensors.push_back(std::move(row));
  }
  for (auto& [key, mismatch] : mismatches_) report->mismatches.push_back(std::move(mismatch));
  report->mismatch_count = mismatch_count_;
  report->is_equal = is_equal_;
  return {};
}

}  // namespace tornasole::tools
