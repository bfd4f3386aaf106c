#pragma once

// NamePlans: what is read of each tensor of a trial, for all rules together.
//
//   in:  the needs of all rules, the names a trial knows
//   out: for each name that matches a need: which needs, and the union of what they ask
//   who: pass.cc, again after every refresh that brought names

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tornasole/rule.h"

namespace tornasole::rules {

struct NamePlan {
  std::vector<std::uint32_t> needs = {};  // numbers of needs, ascending
  StatSet stats = {};
  bool value = false;
  bool reductions_without_value = false;
  std::vector<std::string_view> derived = {};  // to be computed from the value: the trial never stored it
  // Set for a stored statistic: of which tensor, and which. It is handed on with that tensor.
  std::string_view owner = {};
  const NamePlan* owner_plan = nullptr;
  std::string_view statistic = {};
};

class NamePlans {
 public:
  explicit NamePlans(std::vector<Need> needs) : needs_(std::move(needs)) {}

  // kInvalid for a pattern Python would refuse.
  Status update(const Trial& trial);
  const NamePlan* find(std::string_view name) const noexcept;
  std::vector<std::string> names() const;
  std::size_t need_count() const noexcept { return needs_.size(); }
  // Takes from what was stored of a tensor all that no rule needs.
  void select(std::string_view name, StoredForms* forms) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  Status match(const Trial& trial, std::uint32_t number);

  std::vector<Need> needs_;
  std::unordered_map<std::string, NamePlan, Hash, std::equal_to<>> plans_;  // its entries stay where they are
};

// The statistic that a stored reduction is.
std::optional<Stat> stat_of(Reduction reduction);

}  // namespace tornasole::rules
