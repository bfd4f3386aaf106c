// SymmetricUnits: units of a layer start with equal weights, and so never learn different things.

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <unordered_map>

#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/tensor_states.h"
#include "rules/training_steps.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"exclude_regex", ParameterType::kList, "", "Patterns for the names of weights to leave out"},
};

class SymmetricUnits final : public Rule {
 public:
  explicit SymmetricUnits(const RuleArguments& arguments) : exclude_(arguments.list("exclude_regex")) {}

  std::vector<Need> needs() const override {
    return {{.collections = {"weights"}, .exclude_regex = exclude_, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (!is_training_step(step)) return;
    for (const StepTensor* weight : step.tensors()) {
      bool& is_done = done_.of(*weight);
      if (is_done || !weight->value) continue;
      is_done = true;
      look_at_rows(*weight, findings);
    }
  }

  void reset() override { done_.clear(); }

 private:
  static void look_at_rows(const StepTensor& weight, Findings& findings) {
    const Tensor& value = *weight.value;
    if (value.shape().rank() < 2 || value.element_count() <= 0 || value.dtype() == DType::kString) {
      findings.skip("no matrix");
      return;
    }
    findings.count_datapoint();
    const auto rows = static_cast<std::size_t>(value.shape()[0]);
    const std::string_view bytes = value.bytes();
    const std::size_t length = bytes.size() / rows;
    std::unordered_map<std::string_view, std::size_t> seen;  // row -> the first of its kind
    std::size_t equal = 0;
    std::optional<std::pair<std::size_t, std::size_t>> first_pair;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto [found, is_new] = seen.try_emplace(bytes.substr(row * length, length), row);
      if (is_new) continue;
      ++equal;
      if (!first_pair) first_pair = {found->second, row};
    }
    if (has_one_element_only(bytes, dtype_size(value.dtype()))) {
      findings.add(&weight, static_cast<double>(rows), {},
                   fmt::format("{}: all elements are equal at the start", printable(weight.name)));
    } else if (first_pair) {
      findings.add(&weight, static_cast<double>(equal), {},
                   fmt::format("{}: {} of {} rows are equal to another at the start, first {} and {}",
                               printable(weight.name), equal, rows, first_pair->first, first_pair->second));
    }
  }

  // Of several, all alike.
  static bool has_one_element_only(std::string_view bytes, std::size_t size) {
    if (bytes.size() <= size) return false;
    return bytes.substr(size) == bytes.substr(0, bytes.size() - size);
  }

  std::vector<std::string> exclude_;
  TensorStates<bool> done_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  return std::unique_ptr<Rule>(std::make_unique<SymmetricUnits>(arguments));
}

}  // namespace

const RuleType kSymmetricUnits = {
    .name = "SymmetricUnits",
    .group = "detectors",
    .summary = "Units of a layer start with equal weights, and so never learn different things.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
