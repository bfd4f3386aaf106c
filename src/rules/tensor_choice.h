#pragma once

// TensorChoice: the parameters collection_names and tensor_regex, which most rules have.
//
//   in:  the arguments of a rule
//   out: which tensors it looks at: the union of both lists; their defaults hold only if neither was given

#include <string>
#include <string_view>
#include <vector>

#include "tornasole/rule.h"

namespace tornasole::rules {

struct TensorChoice {
  std::vector<std::string> collections = {};
  std::vector<std::string> regex = {};
};

TensorChoice choose_tensors(const RuleArguments& arguments);
// An error of kind kInsufficientInformation if neither was given.
Result<TensorChoice> require_tensors(std::string_view rule, const RuleArguments& arguments);

inline constexpr Parameter kCollectionNames = {"collection_names", ParameterType::kList, "",
                                               "Collections to look at, together with tensor_regex"};
inline constexpr Parameter kTensorRegex = {"tensor_regex", ParameterType::kList, "",
                                           "Patterns for the names of tensors to look at"};

}  // namespace tornasole::rules
