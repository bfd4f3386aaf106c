// TreeDepth: a tree of this boosting round is deeper than is good.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/tensor_numbers.h"
#include "rules/tree_shape.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "TreeDepth";
constexpr std::array<std::string_view, 2> kMethods = {"id", "exact"};

constexpr std::array kParameters = {
    Parameter{"depth", ParameterType::kNumber, "4", "Deeper trees meet the condition"},
    Parameter{"method", ParameterType::kText, "id",
              "id: the depth the largest node number has in a full tree; exact: by following the branches"},
};

class TreeDepth final : public Rule {
 public:
  explicit TreeDepth(const RuleArguments& arguments)
      : limit_(arguments.number("depth")), is_exact_(arguments.text("method") == "exact") {}

  std::vector<Need> needs() const override {
    if (!is_exact_) return {{.names = {"trees/Node"}, .value = true}};
    return {{.names = {"trees/ID"}, .value = true},
            {.names = {"trees/Yes"}, .value = true},
            {.names = {"trees/No"}, .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* nodes : step.tensors()) {
      const auto depth = is_exact_ ? depth_by_branches(step, *nodes, findings) : depth_by_id(*nodes, findings);
      if (!depth) continue;
      findings.count_datapoint();
      if (static_cast<double>(*depth) > limit_) {
        findings.add(nodes, static_cast<double>(*depth), limit_,
                     fmt::format("a tree of depth {}; limit {:g}", *depth, limit_));
      }
    }
  }

  void reset() override {}

 private:
  static std::optional<std::int64_t> depth_by_id(const StepTensor& nodes, Findings& findings) {
    const Tensor* value = numeric_value(nodes, findings);
    if (value == nullptr) return std::nullopt;
    double largest = -1;
    for_each_number(*value, [&](double id) {
      if (id > largest) largest = id;
      return true;
    });
    constexpr double kMaxId = 9e15;  // beyond, a double does not hold every number
    if (!(largest >= 0 && largest <= kMaxId)) {
      findings.skip("no node ids");
      return std::nullopt;
    }
    return std::bit_width(static_cast<std::uint64_t>(largest) + 1) - 1;
  }

  static const Tensor* column_of(const StepView& step, std::size_t need, std::string_view worker) {
    for (const StepTensor* tensor : step.tensors(need)) {
      if (tensor->worker == worker) return tensor->value.get();
    }
    return nullptr;
  }

  static std::optional<std::int64_t> depth_by_branches(const StepView& step, const StepTensor& nodes,
                                                       Findings& findings) {
    const auto shape =
        tree_shape(nodes.value.get(), column_of(step, 1, nodes.worker), column_of(step, 2, nodes.worker));
    if (!shape) {
      findings.skip("no table of branches");
      return std::nullopt;
    }
    return shape->depth;
  }

  double limit_;
  bool is_exact_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "depth", 0));
  TORNASOLE_CHECK(check_word(kName, arguments, "method", kMethods));
  return std::unique_ptr<Rule>(std::make_unique<TreeDepth>(arguments));
}

}  // namespace

const RuleType kTreeDepth = {.name = kName,
                             .group = "XGBoost",
                             .summary = "Trees grow deep, as they do when a model learns its data by heart.",
                             .parameters = kParameters,
                             .make = make};

}  // namespace tornasole::rules
