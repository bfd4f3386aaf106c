#include "rules/check/loss_facts.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "rules/check/number_windows.h"

namespace tornasole::rules {
namespace {

// Of few labels it is not known.
std::optional<double> entropy(const std::vector<std::int64_t>& counts) {
  constexpr double kLabelsPerClass = 5;
  double total = 0;
  for (const std::int64_t count : counts) total += static_cast<double>(count);
  if (total <= 0 || total < kLabelsPerClass * static_cast<double>(counts.size())) return std::nullopt;
  double sum = 0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / total;
    if (share > 0) sum -= share * std::log(share);
  }
  // Labels that are all the same tell nothing of what others there could be.
  if (!(sum > 0)) return std::nullopt;
  return sum;
}

// Of an even guess, as far as what goes into the loss tells how many classes there are.
std::optional<double> even_guess(const RunRecord& run, const History& labels) {
  for (const History* predictions : run.of_role(Role::kPredictions)) {
    if (predictions->role.loss_class != labels.role.loss_class || predictions->size() == 0) continue;
    const double classes = predictions->at(Column::kUnits, 0);
    const bool is_one_each = predictions->at(Column::kSamples, 0) == labels.at(Column::kCount, 0);
    if (classes > 1 && is_one_each) return std::log(classes);
  }
  return std::nullopt;
}

// Of each unit over the samples, averaged over units: one for each training step.
std::vector<double> variances_of(const RunRecord& run, const History& labels) {
  std::vector<double> variances;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (run.steps[labels.points[i]].step.mode != run.training_mode()) continue;
    const double l2 = labels.at(Column::kL2, i);
    const double share = labels.at(Column::kSampleVariance, i);
    const double count = labels.at(Column::kCount, i);
    const double samples = labels.at(Column::kSamples, i);
    // One sample per unit has no variance: a label without an axis of its own is judged by its deviation.
    const double value = samples > 1 ? share * l2 * l2 / count : std::pow(labels.at(Column::kStd, i), 2);
    if (std::isfinite(value)) variances.push_back(value);
  }
  return variances;
}

std::optional<double> variance(const RunRecord& run, const History& labels) {
  std::vector<double> variances = variances_of(run, labels);
  if (variances.empty()) return std::nullopt;
  return median(std::move(variances));
}

// How many samples the loss is a sum over: 1 for a mean. Nothing in a trial says which it is, but a sum begins at about
// as many times the loss of a guess as there are samples in a step, or below; and does not fall at once, as the loss of
// a model does that begins sure of wrong answers.
double samples_summed(const RunRecord& run, const History& labels, double guess) {
  constexpr double kLeastSamples = 8;
  std::vector<double> counts;
  for (std::size_t i = 0; i < labels.size(); ++i) counts.push_back(labels.at(Column::kCount, i));
  std::erase_if(counts, [](double count) { return !std::isfinite(count); });
  const Series losses = run.losses(run.training_mode());
  if (counts.empty() || losses.empty()) return 1;
  const double samples = median(std::move(counts));
  const double first = losses.values.front();
  const double times = first / (samples * guess);
  const bool falls_at_once = losses.values[std::min<std::size_t>(3, losses.size() - 1)] < 0.6 * first;
  return samples >= kLeastSamples && times > 0.4 && times < 1.3 && !falls_at_once ? samples : 1;
}

bool is_about_two(std::string_view loss_class) {
  return loss_class.starts_with("bce") || loss_class.starts_with("binary_cross_entropy");
}

// Of labels that are zero or one: their mean, and how many there are.
struct Ones {
  double share = 0, count = 0;
};
std::optional<Ones> ones_of(const RunRecord& run, const History& labels) {
  Ones ones;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (run.steps[labels.points[i]].step.mode != run.training_mode()) continue;
    const double count = labels.at(Column::kCount, i);
    const double sum = labels.at(Column::kMean, i) * count;
    const bool is_binary = labels.at(Column::kMin, i) >= 0 && labels.at(Column::kMax, i) <= 1 &&
                           std::fabs(labels.at(Column::kZeros, i) + sum - count) < 1e-3 * count;
    if (!is_binary) return std::nullopt;
    ones.share += sum;
    ones.count += count;
  }
  ones.share /= ones.count;
  if (!(ones.share > 0 && ones.share < 1)) return std::nullopt;
  return ones;
}

// Nothing where the loss does not begin near that of an even guess: classes have weights then, or it is a sum.
std::optional<double> binary_guess(const RunRecord& run, const History& labels) {
  const double even = std::log(2.0);
  const std::optional<Ones> ones = ones_of(run, labels);
  const Series losses = run.losses(run.training_mode());
  if (!ones || losses.empty() || std::fabs(losses.values.front() - even) > 0.25 * even) return std::nullopt;
  return -ones->share * std::log(ones->share) - (1 - ones->share) * std::log1p(-ones->share);
}

}  // namespace

bool is_mean_square(std::string_view loss_class) noexcept {
  return loss_class.starts_with("mse") || loss_class.starts_with("meansquarederror") ||
         loss_class.starts_with("mean_squared_error");
}

bool is_mean_distance(std::string_view loss_class) noexcept {
  constexpr std::string_view kLosses[] = {"l1loss", "l1_loss",      "smoothl1",     "smooth_l1",
                                          "huber",  "meanabsolute", "mean_absolute"};
  return std::ranges::any_of(kLosses, [&](std::string_view name) { return loss_class.starts_with(name); });
}

WindowMeans loss_windows(const RunRecord& run, const Series& losses, std::size_t count, std::size_t least) {
  WindowMeans windows = window_means(losses.values, count, run.is_boosting ? 1 : least);
  if (run.is_boosting) windows.noise = 0;
  return windows;
}

bool is_loss_falling(const RunRecord& run) {
  const Series losses = run.losses(run.training_mode());
  const WindowMeans windows = loss_windows(run, losses, 10, 3);
  if (windows.means.size() < 2) return false;
  const double fall = windows.means.front() - *std::ranges::min_element(windows.means);
  return fall > std::max(4 * windows.noise, 0.02 * std::fabs(windows.means.front()));
}

bool is_loss_still(const RunRecord& run) {
  // The means of halves are known better than those of windows.
  const WindowMeans halves = loss_windows(run, run.losses(run.training_mode()), 2, 3);
  if (halves.means.size() < 2 || is_loss_falling(run)) return false;
  const double scale = std::fabs(halves.means.front());
  const double fall = halves.means.front() - halves.means.back();
  return 4 * halves.noise <= kMostLossNoise * scale && fall <= std::max(4 * halves.noise, 0.02 * scale);
}

namespace {

// The last tenth.
std::vector<double> last_losses(const Series& losses) {
  const std::size_t window = std::max<std::size_t>(1, losses.size() / 10);
  return {losses.values.end() - static_cast<std::ptrdiff_t>(window), losses.values.end()};
}

// Where it ends: the median, or what the batches cost on average where some are next to nothing and others a lot. One
// bad batch does not count.
double last_level(const Series& losses) {
  std::vector<double> last = last_losses(losses);
  const double usual = median(last);
  if (last.size() < 3) return usual;
  std::ranges::sort(last);
  return std::max(usual, mean(std::span(last).first(last.size() - 1)));
}

}  // namespace

bool has_loss_suffered(const RunRecord& run) {
  const Series losses = run.losses(run.training_mode());
  if (losses.size() < 2) return false;
  const double first = losses.values.front();
  const std::vector<double> last = last_losses(losses);
  if (std::ranges::any_of(last, [](double value) { return !std::isfinite(value); })) return true;
  return last_level(losses) >= first - 0.02 * std::fabs(first);
}

std::optional<double> loss_left(const RunRecord& run) {
  const Series losses = run.losses(run.training_mode());
  if (losses.size() < 2 || !(losses.values.front() > 0)) return std::nullopt;
  return last_level(losses) / losses.values.front();
}

double loss_peak(const RunRecord& run) {
  constexpr std::size_t kWindow = 5;
  const Series losses = run.losses(run.training_mode());
  if (losses.size() < 2 * kWindow || !(losses.values.front() > 0)) return 0;
  double highest = 0;
  for (std::size_t i = 0; i + kWindow <= losses.size(); ++i) {
    const auto begin = losses.values.begin() + static_cast<std::ptrdiff_t>(i);
    highest = std::max(highest, median({begin, begin + static_cast<std::ptrdiff_t>(kWindow)}));
  }
  return highest / losses.values.front();
}

bool is_loss_mixed(const RunRecord& run) {
  const std::vector<const History*> losses = run.training_losses();
  return std::ranges::any_of(losses, [&](const History* loss) {
    return std::ranges::any_of(losses, [&](const History* other) {
      return other != loss && !loss->role.loss_class.empty() && other->role.loss_class == loss->role.loss_class &&
             other->points == loss->points;
    });
  });
}

bool is_loss_of_a_guess(const RunRecord& run) {
  const Series losses = run.losses(run.training_mode());
  const std::optional<double> trivial = trivial_loss(run);
  return losses.size() >= 2 && trivial && last_level(losses) > 0.97 * *trivial;
}

namespace {

// Of labels that are zero or one, by as much as their share may be off.
double binary_doubt(const RunRecord& run) {
  const std::optional<double> guess = trivial_loss(run);
  for (const History* labels : run.of_role(Role::kLabels)) {
    const std::optional<Ones> ones = ones_of(run, *labels);
    if (!guess || !ones) continue;
    const double share = ones->share;
    const double slope = std::fabs(std::log((1 - share) / share));
    return std::min(1.0, 2 * slope * std::sqrt(share * (1 - share) / ones->count) / *guess);
  }
  return 0;
}

// The deviation of the mean of these numbers, as a share of it.
double spread_of_mean(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  const auto count = static_cast<double>(values.size());
  return center > 0 ? std::sqrt(squares / (count - 1) / count) / center : 0;
}

// How far the loss of a guess may be off, as a share: a variance is known as well as its samples are many.
double guess_doubt(const RunRecord& run) {
  if (is_about_two(run.loss_class())) return binary_doubt(run);
  if (!is_mean_square(run.loss_class())) return 0;
  double samples = 0;
  double spread = 0;  // batches may be tasks of their own, which differ by more than their samples do
  for (const History* labels : run.of_role(Role::kLabels)) {
    for (std::size_t i = 0; i < labels->size(); ++i) {
      const double rows = labels->at(Column::kSamples, i);
      const double count = rows > 1 ? rows : labels->at(Column::kCount, i);
      if (std::isfinite(count)) samples += count;
    }
    spread = std::max(spread, spread_of_mean(variances_of(run, *labels)));
  }
  return samples > 0 ? std::min(1.0, 2 * std::max(std::sqrt(2 / samples), spread)) : 0;
}

}  // namespace

bool is_learned(const RunRecord& run) {
  const Series losses = run.losses(run.training_mode());
  const WindowMeans windows = loss_windows(run, losses, 10, 4);
  const std::optional<double> trivial = trivial_loss(run);
  return trivial && !windows.means.empty() && *std::ranges::min_element(windows.means) < 0.5 * *trivial;
}

bool stays_at_guess(const RunRecord& run) {
  constexpr double kNear = 0.03;
  constexpr double kFalls = 0.05;
  const Series losses = run.losses(run.training_mode());
  const std::optional<double> trivial = trivial_loss(run);
  const WindowMeans windows = loss_windows(run, losses, 10, 4);
  if (!trivial || !(*trivial > 0) || windows.means.size() < 2) return false;
  const std::span<const double> values(losses.values);
  const std::size_t half = values.size() / 2;
  const double level = mean(values.last(half));
  const double third_quarter = mean(values.last(half).first(half / 2));
  const double last_quarter = mean(values.last(half / 2));
  const double noise = windows.noise * std::sqrt(static_cast<double>(windows.length) /
                                                 static_cast<double>(std::max<std::size_t>(half, 1)));
  const double fall = third_quarter - last_quarter;
  const bool is_falling = fall > std::max(8 * noise, kFalls * std::fabs(level));
  const double limit = (1 - kNear + guess_doubt(run)) * *trivial;
  return level - 4 * noise > limit && last_quarter > limit && !is_falling;
}

bool collects_its_data(const RunRecord& run) {
  constexpr std::int64_t kMostPasses = 3;  // for each that trains
  std::set<std::uint32_t> with_loss;       // in evaluations, too: those are no play
  for (const History* loss : run.of_role(Role::kLoss)) with_loss.insert(loss->points.begin(), loss->points.end());
  const bool has_others = std::ssize(run.steps) > kMostPasses * std::ssize(with_loss);
  std::int64_t taken = -1;
  for (const StepPoint& point : run.steps) taken = std::max(taken, point.optimizer_step);
  if (taken < 0) return has_others;
  // Losses may be saved more rarely than others: counted optimizer steps tell it better.
  if (run.steps.back().global_step + 1 <= kMostPasses * taken) return false;
  // Of most calls nothing may be saved: those that were looked at closely tell what the others are like.
  std::set<std::uint32_t> looked_at;
  for (const History* output : run.of_role(Role::kLayerOutput)) {
    looked_at.insert(output->points.begin(), output->points.end());
  }
  const auto trained = std::ranges::count_if(looked_at, [&](std::uint32_t point) { return with_loss.contains(point); });
  return has_others || std::ssize(looked_at) > kMostPasses * trained;
}

std::optional<double> trivial_loss(const RunRecord& run) {
  const std::string loss = run.loss_class();
  for (const History* labels : run.of_role(Role::kLabels)) {
    if (labels->role.loss_class != loss) continue;
    if (is_about_classes(loss)) {
      std::optional<double> guess = entropy(labels->label_counts);
      if (!guess && labels->size() > 0) guess = even_guess(run, *labels);
      return guess ? *guess * samples_summed(run, *labels, *guess) : guess;
    }
    if (is_about_two(loss)) return binary_guess(run, *labels);
    if (is_mean_square(loss)) return variance(run, *labels);
  }
  return std::nullopt;
}

}  // namespace tornasole::rules
