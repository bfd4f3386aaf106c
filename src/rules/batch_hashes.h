#pragma once

// The input batch of each worker as one number: equal batches have equal numbers.

#include <cstdint>
#include <map>
#include <string_view>

#include "rules/class_values.h"
#include "rules/scalar_values.h"
#include "rules/tensor_choice.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

inline constexpr Parameter kInputCollections = {"collection_names", ParameterType::kList, "inputs",
                                                "Collections with the inputs, together with tensor_regex"};

inline Need batch_need(const TensorChoice& choice) {
  return {
      .collections = choice.collections, .regex = choice.regex, .exclude_regex = {kDerivedNames}, .derived = {"hash"}};
}

// By worker; without workers of which an input's hash is not known.
inline std::map<std::string_view, std::uint64_t> batch_hashes(std::span<const StepTensor* const> inputs,
                                                              Findings& findings) {
  std::map<std::string_view, std::uint64_t> hashes;
  for (const auto& [worker, tensors] : by_worker(inputs)) {
    std::uint64_t together = 0;
    bool is_known = true;
    for (const StepTensor* tensor : tensors) {
      const Tensor* hash = tensor->derived_statistic("hash");
      is_known = is_known && hash != nullptr && hash->values<std::int64_t>().size() == 1;
      if (!is_known) break;
      // Multiplied before the next one comes: the order counts.
      together = (together + static_cast<std::uint64_t>(hash->values<std::int64_t>()[0])) * 0x9e3779b97f4a7c15ULL;
      together ^= together >> 29;
    }
    if (is_known) {
      findings.count_datapoint();
      hashes[worker] = together;
    } else {
      findings.skip("no value");
    }
  }
  return hashes;
}

}  // namespace tornasole::rules
