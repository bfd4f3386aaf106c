#pragma once

// A schedule told to a person.

#include <string>

#include "config/config.h"

namespace tornasole::cli {

// "every 50 from 1 to 900 (exclusive), and 3, 5, 8"; "never"; "every step; also when a tensor matching loss is not
// finite".
std::string in_words(const config::Schedule& schedule);
// "min, max", "raw", "mean, raw, shape", "nothing".
std::string in_words(const ReductionSpec& form);

}  // namespace tornasole::cli
