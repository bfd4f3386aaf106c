// ReplicaDivergence: copies of a weight that several workers hold are not the same.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/scalar_values.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "ReplicaDivergence";

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "weights,biases", "Collections of tensors that must agree"},
    kTensorRegex,
    Parameter{"rtol", ParameterType::kNumber, "0", "Limit of |difference| / |tensor|; 0: any difference"},
    Parameter{"sharded", ParameterType::kList, "", "Patterns for the names of tensors that are meant to differ"},
};

// The l2 of a - b over that of a. NaN in both is no difference; in one, or another shape, an infinite one.
double distance(const Tensor& a, const Tensor& b) {
  constexpr double kTiny = 1e-12;
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return std::numeric_limits<double>::infinity();
  if (a.dtype() == DType::kString || reduce::is_complex_dtype(a.dtype())) {
    return a == b ? 0 : std::numeric_limits<double>::infinity();
  }
  const std::vector<double> others = to_doubles(b);
  double difference = 0;
  double size = 0;
  std::size_t at = 0;
  for_each_number(a, [&](double own) {
    const double other = others[at++];
    if (own == other || (std::isnan(own) && std::isnan(other))) {
      if (std::isfinite(own)) size = std::hypot(size, own);
      return true;
    }
    size = std::isfinite(own) ? std::hypot(size, own) : size;
    const double apart = std::fabs(own - other);
    difference = std::hypot(difference, std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart);
    return true;
  });
  return difference / (size + kTiny);
}

class ReplicaDivergence final : public Rule {
 public:
  explicit ReplicaDivergence(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)), sharded_(arguments.list("sharded")), rtol_(arguments.number("rtol")) {}

  std::vector<Need> needs() const override {
    Need need{
        .collections = choice_.collections, .regex = choice_.regex, .exclude_regex = sharded_, .derived = {"hash"}};
    need.exclude_regex.push_back(kDerivedNames);
    return {need};
  }

  void look_at(const StepView& step, Findings& findings) override {
    std::map<std::string_view, std::vector<const StepTensor*>> copies;
    for (const StepTensor* tensor : step.tensors()) copies[tensor->name].push_back(tensor);
    for (const auto& [name, tensors] : copies) compare(step, tensors, findings);
  }

  void reset() override {}

 private:
  void compare(const StepView& step, const std::vector<const StepTensor*>& tensors, Findings& findings) const {
    std::map<std::int64_t, std::vector<const StepTensor*>> groups;  // by hash
    for (const StepTensor* tensor : tensors) {
      const Tensor* hash = tensor->derived_statistic("hash");
      if (hash == nullptr || hash->values<std::int64_t>().size() != 1) {
        findings.skip("no value");
        continue;
      }
      groups[hash->values<std::int64_t>()[0]].push_back(tensor);
      findings.count_datapoint();
    }
    if (groups.size() < 2) return;
    // The majority, and of equally large groups the one with the first worker.
    const auto before = [](const auto& a, const auto& b) {
      if (a.second.size() != b.second.size()) return a.second.size() > b.second.size();
      return a.second.front()->worker < b.second.front()->worker;
    };
    const auto majority = std::ranges::min_element(groups, before);
    for (const StepTensor* tensor : tensors) {
      if (std::ranges::find(majority->second, tensor) != majority->second.end()) continue;
      if (tensor->derived_statistic("hash") != nullptr) report(step, *majority->second.front(), *tensor, findings);
    }
  }

  void report(const StepView& step, const StepTensor& usual, const StepTensor& other, Findings& findings) const {
    // Read only now: copies that agree, which is nearly always, are never compared by value.
    const ModeStep at{Mode::kGlobal, step.global_step().number};
    const auto a = step.trial().tensor(usual.name, at, usual.worker);
    const auto b = step.trial().tensor(other.name, at, other.worker);
    std::optional<double> apart;
    if (a && b) apart = distance(*a, *b);
    if (apart ? !(*apart > rtol_) : rtol_ > 0) {
      if (!apart) findings.skip("no value");
      return;
    }
    findings.add(
        &other, apart, rtol_,
        fmt::format("{}: the copy of {} differs from that of {}{}", printable(other.name), printable(other.worker),
                    printable(usual.worker), apart ? fmt::format(" by {:.4g} of its size", *apart) : std::string()));
  }

  TensorChoice choice_;
  std::vector<std::string> sharded_;
  double rtol_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "rtol", 0));
  return std::unique_ptr<Rule>(std::make_unique<ReplicaDivergence>(arguments));
}

}  // namespace

const RuleType kReplicaDivergence = {.name = kName,
                                     .group = "detectors",
                                     .summary = "Workers that should hold the same weights do not.",
                                     .parameters = kParameters,
                                     .make = make};

}  // namespace tornasole::rules
