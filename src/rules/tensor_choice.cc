#include "rules/tensor_choice.h"

#include "rules/rule_errors.h"

namespace tornasole::rules {

TensorChoice choose_tensors(const RuleArguments& arguments) {
  const bool has_collections = arguments.is_given("collection_names");
  const bool has_regex = arguments.is_given("tensor_regex");
  TensorChoice choice;
  if (has_collections || !has_regex) choice.collections = arguments.list("collection_names");
  if (has_regex || !has_collections) choice.regex = arguments.list("tensor_regex");
  return choice;
}

Result<TensorChoice> require_tensors(std::string_view rule, const RuleArguments& arguments) {
  TensorChoice choice = choose_tensors(arguments);
  if (choice.collections.empty() && choice.regex.empty()) {
    return insufficient_error(rule, "neither collection_names nor tensor_regex is given; one of them must be");
  }
  return choice;
}

}  // namespace tornasole::rules
