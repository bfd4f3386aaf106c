#pragma once

// How far a weight went from one saved step to the next, where statistics of it are all there is. Pure.

#include <array>
#include <optional>

#include "rules/check/run_record.h"

namespace tornasole::rules {

// Root mean squares over the elements.
struct StatChange {
  double change = 0;  // about: the most that any of its statistics went
  double size = 0;    // before
};
// Nothing where too little is known of either.
std::optional<StatChange> change_by_stats(const std::array<float, kColumnCount>& then,
                                          const std::array<float, kColumnCount>& now);

}  // namespace tornasole::rules
