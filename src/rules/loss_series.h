#pragma once

// Rules about one series of losses: each scalar of each worker and mode for itself.

#include <cmath>

#include "rules/scalar_values.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_states.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

inline constexpr Parameter kLossCollections = {"collection_names", ParameterType::kList, "losses",
                                               "Collections with the losses, together with tensor_regex"};

template <typename State>
class LossSeries {
 public:
  explicit LossSeries(const RuleArguments& arguments) : choice_(choose_tensors(arguments)) {}

  Need need() const { return scalar_need(choice_.collections, choice_.regex); }
  // Calls look(tensor, value, state) for each finite scalar of the step's first need.
  template <typename Look>
  void look_at(const StepView& step, Findings& findings, const Look& look) {
    for (const StepTensor* tensor : step.tensors()) {
      const auto value = scalar_value(*tensor, findings);
      if (!value) continue;
      if (!std::isfinite(*value)) {
        findings.skip("not finite");
        continue;
      }
      findings.count_datapoint();
      look(*tensor, *value, states_.of(*tensor, step.mode()));
    }
  }
  const TensorStates<State>& states() const { return states_; }
  void clear() { states_.clear(); }

 private:
  TensorChoice choice_;
  TensorStates<State> states_;
};

}  // namespace tornasole::rules
