#pragma once

// What is in a trial, as `ls` tells it; made from a trial, printed as text or JSON.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/trial_paths.h"
#include "tornasole/trial.h"

namespace tornasole::cli {

struct StepsSummary {
  Mode mode = Mode::kGlobal;
  std::int64_t count = 0, first = 0, last = 0;
  std::int64_t incomplete = 0, partial = 0;  // besides `count`
};

struct TensorSummary {
  std::string name;
  std::int64_t steps = 0, first = 0, last = 0;  // global
  // With details: at the last step, of the first worker.
  std::optional<std::string> form = {};  // "value", "reductions", "shape", "damaged"
  std::string dtype = {}, shape = {};
};

struct TrialSummary {
  std::string path = {}, name = {};
  RunStatus status = {};
  std::vector<std::string> workers = {};
  std::vector<StepsSummary> steps = {};  // all steps first (kGlobal), then each mode
  struct Collection {
    std::string name;
    std::int64_t tensors = 0;  // saved ones
    std::vector<std::string> patterns = {};
  };
  std::vector<Collection> collections = {};
  std::vector<TensorSummary> tensors = {};
  std::int64_t damaged_files = 0;
  DiskUse disk = {};
  std::map<std::string, std::int64_t> requests = {};  // of its writers to an object store, by kind
};

struct SummaryWish {
  std::string path = {};     // as it is shown
  bool details = false;      // reads the last value of each tensor
  std::string pattern = {};  // only tensors with this in their name
};
Result<TrialSummary> summarise(const Trial& trial, const SummaryWish& wish);

std::string summary_text(const TrialSummary& summary, const Terminal& terminal);
std::string summary_json(const TrialSummary& summary);
// One row for each of several trials.
std::string overview_text(const std::vector<TrialSummary>& summaries, const Terminal& terminal);

}  // namespace tornasole::cli
