#pragma once

// Whether a tensor is, bit for bit, what it was: by the hash that was stored, or that of the value.

#include <cstdint>
#include <optional>

#include "tornasole/rule.h"

namespace tornasole::rules {

// For needs with `derived = {"hash"}`. Nothing if neither the hash nor the value was saved.
inline std::optional<std::int64_t> content_hash_of(const StepTensor& tensor) {
  const Tensor* hash = tensor.derived_statistic("hash");
  if (hash == nullptr) return std::nullopt;
  const auto values = hash->values<std::int64_t>();
  return values.size() == 1 ? std::optional(values[0]) : std::nullopt;
}

}  // namespace tornasole::rules
