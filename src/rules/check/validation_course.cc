#include "rules/check/validation_course.h"

#include <algorithm>
#include <cmath>

#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kLate = 3;
constexpr double kLeastLost = 0.03;  // of what training won, for a rise of the validation loss to count

// Means over uninterrupted runs of evaluation steps. Boosting evaluates at every step.
Series evaluation_means(const RunRecord& run) {
  if (!run.of_role(Role::kValidationLoss).empty()) return run.losses(run.training_mode(), Role::kValidationLoss);
  const Series losses = run.losses(Mode::kEval);
  Series means;
  std::vector<double> open;
  std::size_t at = 0;
  const auto close = [&](std::int64_t step) {
    if (open.empty()) return;
    means.steps.push_back(step);
    means.values.push_back(mean(open));
    open.clear();
  };
  std::int64_t last_step = 0;
  for (const StepPoint& point : run.steps) {
    if (point.step.mode == Mode::kEval) {
      if (at < losses.size() && losses.steps[at] == point.global_step) open.push_back(losses.values[at++]);
      last_step = point.global_step;
    } else {
      close(last_step);
    }
  }
  close(last_step);
  return means;
}

double last_quarter(const std::vector<double>& values) {
  return mean(std::span(values).last(std::max<std::size_t>(1, values.size() / 4)));
}

}  // namespace

std::size_t evaluation_count(const RunRecord& run) { return evaluation_means(run).size(); }

std::optional<ValidationCourse> validation_course(const RunRecord& run) {
  if (run.of_role(Role::kLoss).empty()) return std::nullopt;
  ValidationCourse course{.validation = evaluation_means(run), .training = run.losses(run.training_mode())};
  const Series& validation = course.validation;
  const Series& training = course.training;
  if (validation.size() < kLeastEvaluations || training.size() < kLeastEvaluations) return std::nullopt;
  const auto best = std::ranges::min_element(validation.values);
  course.best_at = static_cast<std::size_t>(best - validation.values.begin());
  course.best = *best;
  course.last = median(std::vector<double>(validation.values.end() - kLate, validation.values.end()));
  if (!run.is_boosting) {
    std::vector<double> differences;
    for (std::size_t i = 1; i < validation.size(); ++i)
      differences.push_back(validation.values[i] - validation.values[i - 1]);
    course.noise = robust_deviation(differences) / std::sqrt(2.0);
  }
  std::vector<double> before;
  std::vector<double> after;
  for (std::size_t i = 0; i < training.size(); ++i) {
    (training.steps[i] <= validation.steps[course.best_at] ? before : after).push_back(training.values[i]);
  }
  if (before.empty()) before.push_back(training.values.front());
  if (after.empty()) after.push_back(training.values.back());
  const std::size_t window = std::max<std::size_t>(1, std::min(before.size(), after.size()) / 4);
  course.training_then = mean(std::span(before).last(window));
  course.training_now = mean(std::span(after).last(window));
  std::vector<double> at_first;
  for (std::size_t i = 0; i < training.size() && training.steps[i] <= validation.steps.front(); ++i) {
    at_first.push_back(training.values[i]);
  }
  course.training_first = at_first.empty() ? training.values.front() : last_quarter(at_first);
  return course;
}

bool has_validation_won_nothing(const ValidationCourse& course) {
  constexpr double kMuch = 0.1;      // of the training loss at the first evaluation
  constexpr double kNothing = 0.05;  // of what training won
  const double won = course.training_first - course.training_now;
  const double validation_won = course.validation.values.front() - course.best;
  return won > kMuch * std::fabs(course.training_first) && validation_won < kNothing * won &&
         course.last >= course.validation.values.front() + 3 * course.noise;
}

bool is_overfit(const ValidationCourse& course) {
  const Series& validation = course.validation;
  if (course.best_at + kLate >= validation.size()) return false;
  const double rise = course.rise();
  if (!(rise > 3 * course.noise) || !(course.training_now < course.training_then)) return false;
  // What is left is next to nothing of what there was: a rise of it is no loss of anything.
  if (rise < kLeastLost * (course.training.values.front() - course.training_now)) return false;
  // A small rise counts where the training set is learned and validation is hardly better than at its start.
  const double best = std::fabs(course.best);
  const bool is_by_heart =
      course.training_now < 0.3 * course.last && course.last > 0.3 * validation.values.front() && rise > 0.03 * best;
  return rise > 0.1 * best || is_by_heart || has_validation_won_nothing(course);
}

}  // namespace tornasole::rules
