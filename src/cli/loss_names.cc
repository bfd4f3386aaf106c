#include "cli/loss_names.h"

namespace tornasole::cli {
namespace {

constexpr std::string_view kDerived = "derived/";  // statistics of tensors

std::vector<std::string> names_of(const Trial& trial, const NameQuery& query) {
  auto names = trial.tensor_names(query);
  if (!names) return {};
  std::erase_if(*names, [](const std::string& name) { return name.starts_with(kDerived); });
  return std::move(*names);
}

}  // namespace

std::vector<std::string> loss_names(const Trial& trial, NameQuery query) {
  query.collection = "losses";
  std::vector<std::string> names = names_of(trial, query);
  if (!names.empty()) return names;
  query.collection.reset();
  query.regex = {"(?i)loss"};
  return names_of(trial, query);
}

}  // namespace tornasole::cli
