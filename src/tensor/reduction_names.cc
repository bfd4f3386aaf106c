#include "tornasole/reduction.h"

namespace tornasole {

std::string_view reduction_kind_name(ReductionKind kind) noexcept {
  constexpr std::array<std::string_view, 10> kNames = {"min",      "max", "median", "mean", "std",
                                                       "variance", "sum", "prod",   "l1",   "l2"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<ReductionKind> parse_reduction_kind(std::string_view name) noexcept {
  for (const ReductionKind kind : kAllReductionKinds) {
    if (reduction_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string reduction_name(Reduction reduction) {
  std::string name = reduction.of_absolute ? "abs_" : "";
  return name += reduction_kind_name(reduction.kind);
}

std::string reduction_config_text(Reduction reduction) {
  std::string text = reduction_name(reduction);
  if (is_norm(reduction.kind)) text += "_norm";
  return text;
}

std::optional<Reduction> parse_reduction(std::string_view text) noexcept {
  Reduction reduction;
  if (text.starts_with("abs_")) {
    reduction.of_absolute = true;
    text.remove_prefix(4);
  }
  const bool has_suffix = text.ends_with("_norm");
  if (has_suffix) text.remove_suffix(5);
  const auto kind = parse_reduction_kind(text);
  if (!kind || (has_suffix && !is_norm(*kind))) return std::nullopt;
  reduction.kind = *kind;
  return reduction;
}

}  // namespace tornasole
