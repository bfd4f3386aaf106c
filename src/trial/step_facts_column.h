#pragma once

// StepFactsColumn: what each part's index file says of its step. Runs that say nothing cost nothing, one that scales no
// gradients nine bytes a part.

#include <cstdint>
#include <vector>

#include "tornasole/model.h"

namespace tornasole::trial {

class StepFactsColumn {
 public:
  // `part_count`: how many parts are known to come at least.
  void set(std::uint32_t part, const StepFacts& facts, std::size_t part_count);
  // Empty for a part that nothing was said of.
  StepFacts get(std::uint32_t part) const noexcept;
  bool has_any(std::uint32_t part) const noexcept { return part < known_.size() && known_[part] != 0; }
  std::int64_t size_bytes() const noexcept;

 private:
  std::vector<std::uint8_t> known_;            // per part: which facts, and those that are true or false
  std::vector<std::int64_t> optimizer_steps_;  // per part
  std::vector<double> grad_scales_;            // per part, once there is one
};

}  // namespace tornasole::trial
