#pragma once

// What the loss of a training tells about the run as a whole. Pure; detectors share these.

#include <optional>

#include "rules/check/number_windows.h"
#include "rules/check/run_record.h"

namespace tornasole::rules {

// Whether a loss is the mean of squared distances from the targets, or of distances that count as they are when large.
bool is_mean_square(std::string_view loss_class) noexcept;
bool is_mean_distance(std::string_view loss_class) noexcept;
// About `count` windows of at least `least` losses. Those of boosting are over whole data sets: one each, without
// noise.
WindowMeans loss_windows(const RunRecord& run, const Series& losses, std::size_t count, std::size_t least);
// Whether it falls by more than its noise.
bool is_loss_falling(const RunRecord& run);
// Whether it is no better at the end than at the start, or broke.
bool has_loss_suffered(const RunRecord& run);
// What is left of the first one at the end, as a share; nothing for those that are not above zero.
std::optional<double> loss_left(const RunRecord& run);
// The highest level it ever had, as a multiple of the first one; 0 for those that are not above zero. One bad batch is
// no level.
double loss_peak(const RunRecord& run);
// Four deviations of a window beyond this share of the loss: nobody could tell a fall from the noise.
inline constexpr double kMostLossNoise = 0.03;
// Whether it does not fall, and is steady enough to tell.
bool is_loss_still(const RunRecord& run);
// Whether it is no better at the end than a constant answer, as far as that is known.
bool is_loss_of_a_guess(const RunRecord& run);
// Whether a loss is taken several times at a step: what each counts for is not known, as where samples are mixed, so
// that their mean need not be what is trained.
bool is_loss_mixed(const RunRecord& run);
// Whether at some time it is far below that of a constant answer.
bool is_learned(const RunRecord& run);
// Whether the second half of the run lies where a constant answer would, or above, and does not go on falling. The mean
// of many losses is known better than any of them, so that this can be told of noisy losses, too.
bool stays_at_guess(const RunRecord& run);
// Whether the model is called far more often than it is trained: by a program that plays, say, and learns from what
// came of it. What it learns from changes as it learns, and its loss need not fall.
bool collects_its_data(const RunRecord& run);
inline constexpr std::string_view kCollectsItsData =
    "most calls of the model are no training: what it learns from may change as it learns";
// What the best constant prediction would cost: the entropy of the labels, their variance. Nothing where the loss is
// another one, or the labels were not saved.
std::optional<double> trivial_loss(const RunRecord& run);

}  // namespace tornasole::rules
