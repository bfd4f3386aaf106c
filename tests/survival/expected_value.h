#pragma once

#include <cstddef>
#include <vector>

namespace tornasole::survival {

// What survival_train saves as tensor t<tensor> at a step, and what survival_check and its Python twin expect to read.
inline std::vector<float> expected_value(long step, long tensor, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<float>((static_cast<std::size_t>(step) * 7 + static_cast<std::size_t>(tensor) * 13 + i) % 1021);
  }
  return values;
}

}  // namespace tornasole::survival
