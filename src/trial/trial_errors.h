#pragma once

// The errors of a trial, each with its kind and what it is about. Messages name tensor, step and mode; text from files
// is made printable.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole::trial {

// "step 7", "TRAIN step 7".
std::string describe(ModeStep step);

Error missing_collections_error(std::string_view trial, std::string_view what);
// A file that is damaged; `what` says how.
Error index_reader_error(std::string_view path, std::string_view what);
Error tensor_unavailable_error(std::string_view tensor, std::string_view trial,
                               const std::vector<std::string>& near_misses);
Error step_unavailable_error(ModeStep step, std::int64_t last_step, std::string_view why);
Error step_not_yet_error(ModeStep step, std::int64_t last_step, std::string_view why);
Error no_more_data_error(ModeStep step, std::int64_t last_step, std::string_view why);
Error invalid_worker_error(std::string_view worker, std::string_view tensor, ModeStep step,
                           const std::vector<std::string>& workers);

struct UnavailableValue {
  std::string_view tensor = {};
  ModeStep step = {};
  std::string_view worker = {};
  std::string_view reason = {};  // "damaged", "missing file", "only reductions", "not saved"
  std::string message = {};      // the rest of the sentence
  bool has_reductions = false;
  bool may_come = false;  // kNotYet instead of kNotFound or kCorrupt
};
Error value_unavailable_error(const UnavailableValue& value);
Error shape_unavailable_error(std::string_view tensor, ModeStep step);

// Names of `known` that are close to `name`, the closest first, at most three.
std::vector<std::string> near_misses(std::string_view name, const std::vector<std::string>& known);

}  // namespace tornasole::trial
