#include "config/reductions.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "config/config.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

// Reductions, norms, absolute reductions, absolute norms: each in the order given, each once.
std::vector<Reduction> in_order(const std::vector<Reduction>& reductions) {
  std::vector<Reduction> ordered;
  for (const bool of_absolute : {false, true}) {
    for (const bool norms : {false, true}) {
      for (const Reduction& reduction : reductions) {
        const bool belongs = reduction.of_absolute == of_absolute && is_norm(reduction.kind) == norms;
        if (belongs && std::find(ordered.begin(), ordered.end(), reduction) == ordered.end()) {
          ordered.push_back(reduction);
        }
      }
    }
  }
  return ordered;
}

}  // namespace

std::optional<ReductionSpec> ReductionFields::spec() const {
  // "save_shape": false alone asks for nothing, while "save_raw_tensor": false does: no raw tensors.
  if (!reductions && !save_raw_tensor && !save_shape.value_or(false)) return std::nullopt;
  return ReductionSpec{in_order(reductions.value_or(std::vector<Reduction>{})), save_raw_tensor.value_or(false),
                       save_shape.value_or(false)};
}

Result<std::vector<Reduction>> read_reductions(const Json& value) {
  TORNASOLE_TRY(const std::vector<std::string> items, read_texts(value));
  std::vector<Reduction> reductions;
  for (const std::string& item : items) {
    const std::string_view text = trim(item);
    if (text.empty()) continue;
    const auto reduction = parse_reduction(text);
    if (!reduction) {
      return invalid_error(
          "the item {} is not allowed; allowed: min, max, median, mean, std, variance, sum, prod, l1, l2, "
          "each also with abs_ before it",
          Json(std::string(text), 0).to_message());
    }
    reductions.push_back(*reduction);
  }
  return reductions;
}

Result<ReductionSpec> make_reduction_spec(const ReductionConfig& config) {
  struct Part {
    const char* name;
    const std::vector<std::string>* items;
    bool norms;
    bool of_absolute;
  };
  const std::array<Part, 4> parts = {{{"reductions", &config.reductions, false, false},
                                      {"norms", &config.norms, true, false},
                                      {"abs_reductions", &config.abs_reductions, false, true},
                                      {"abs_norms", &config.abs_norms, true, true}}};
  std::vector<Reduction> reductions;
  for (const Part& part : parts) {
    for (const std::string& item : *part.items) {
      const auto kind = parse_reduction_kind(item);
      if (!kind || is_norm(*kind) != part.norms) {
        return invalid_error("{}: the item {} is not allowed; allowed: {}", part.name, Json(item, 0).to_message(),
                             part.norms ? "l1, l2" : "min, max, median, mean, std, variance, sum, prod");
      }
      reductions.push_back({*kind, part.of_absolute});
    }
  }
  return ReductionSpec{in_order(reductions), config.save_raw_tensor, config.save_shape};
}

}  // namespace tornasole::config
