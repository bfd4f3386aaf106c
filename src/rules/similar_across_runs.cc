// SimilarAcrossRuns: tensors differ from those of another run at the same step.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/rule_errors.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "",
              "Collections to compare; with no pattern either: everything"},
    kTensorRegex,
    Parameter{"include_regex", ParameterType::kList, "", "An older name of tensor_regex"},
    Parameter{"rtol", ParameterType::kNumber, "1e-05", "The difference that counts as none, relative to this run"},
    Parameter{"atol", ParameterType::kNumber, "1e-08", "The difference that counts as none"},
    Parameter{"equal_nan", ParameterType::kFlag, "True", "NaN equals NaN"},
};
constexpr std::size_t kMaxListed = 10'000;  // of the steps the other run has not

class SimilarAcrossRuns final : public Rule {
 public:
  SimilarAcrossRuns(const RuleArguments& arguments, const Trial* other)
      : choice_(choose_tensors(arguments)),
        tolerance_{arguments.number("rtol"), arguments.number("atol"), arguments.flag("equal_nan")},
        other_(*other) {
    std::ranges::copy(arguments.list("include_regex"), std::back_inserter(choice_.regex));
  }

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    const ModeStep at{Mode::kGlobal, step.global_step().number};
    const bool has_step = other_.has_passed_step(at) == StepState::kAvailable;
    if (!has_step && missing_steps_.size() < kMaxListed) missing_steps_.insert(at.number);
    std::vector<const StepTensor*> tensors;
    std::vector<ValueQuery> queries;
    for (const StepTensor* tensor : step.tensors()) {
      if (numeric_value(*tensor, findings) == nullptr) continue;
      const auto worker = worker_of(step, *tensor, at);
      if (!worker) {
        findings.skip("not in the other run");
        if (!other_.has_tensor(tensor->name)) {
          missing_tensors_.insert(std::string(tensor->name));
        } else if (has_step) {
          ++missing_values_[std::string(tensor->name)];
        }
        continue;
      }
      tensors.push_back(tensor);
      queries.push_back({.name = std::string(tensor->name), .step = at, .worker = *worker});
    }
    const Status done = other_.read(queries, [&](std::size_t place, const Result<Tensor>& value) {
      compare(*tensors[place], value, findings);
      return true;
    });
    if (!done) findings.skip("the other run cannot be read");
  }

  std::map<std::string, std::string> details() const override {
    std::map<std::string, std::string> details;
    JsonWriter tensors(&details["missing_tensors"]);
    tensors.begin_array();
    for (const std::string& name : missing_tensors_) tensors.value(name);
    tensors.end_array();
    JsonWriter steps(&details["missing_steps"]);
    steps.begin_array();
    for (const std::int64_t step : missing_steps_) steps.value(step);
    steps.end_array();
    JsonWriter values(&details["missing_values"]);
    values.begin_object();
    for (const auto& [name, count] : missing_values_) values.key(name).value(count);
    values.end_object();
    return details;
  }

  void reset() override {
    missing_tensors_.clear();
    missing_steps_.clear();
    missing_values_.clear();
  }

 private:
  // Who saved it there: the worker of the same name, or the only one of a run with one worker, whatever its name is.
  std::optional<std::string> worker_of(const StepView& step, const StepTensor& tensor, ModeStep at) const {
    const auto found = other_.tensor(tensor.name);
    if (!found) return std::nullopt;
    const auto workers = found->workers(at);
    if (!workers || workers->empty()) return std::nullopt;
    if (std::ranges::count(*workers, tensor.worker) > 0) return std::string(tensor.worker);
    const bool are_alone = step.trial().num_workers() <= 1 && other_.num_workers() <= 1;
    return are_alone ? std::optional(workers->front()) : std::nullopt;
  }

  void compare(const StepTensor& own, const Result<Tensor>& other, Findings& findings) {
    if (!other) {
      findings.skip("not in the other run");
      ++missing_values_[std::string(own.name)];
      return;
    }
    findings.count_datapoint();
    const bool is_number = other->dtype() != DType::kString && !reduce::is_complex_dtype(other->dtype());
    if (is_number && all_close(*other, *own.value, tolerance_)) return;
    const bool has_same_shape = other->shape() == own.value->shape();
    findings.add(&own, {}, {},
                 has_same_shape ? fmt::format("{}: differs from the other run", printable(own.name))
                                : fmt::format("{}: its shape is {} here and {} in the other run", printable(own.name),
                                              own.value->shape().to_string(), other->shape().to_string()));
  }

  TensorChoice choice_;
  Tolerance tolerance_;
  const Trial& other_;
  std::set<std::string> missing_tensors_;
  std::set<std::int64_t> missing_steps_;
  std::map<std::string, std::int64_t> missing_values_;  // tensors and steps that it has, but not together
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& context) {
  if (context.others.size() != 1) {
    return insufficient_error("SimilarAcrossRuns", "{} other trials are given; it compares with exactly one",
                              context.others.size());
  }
  return std::unique_ptr<Rule>(std::make_unique<SimilarAcrossRuns>(arguments, context.others.front()));
}

}  // namespace

const RuleType kSimilarAcrossRuns = {.name = "SimilarAcrossRuns",
                                     .group = "universal",
                                     .summary = "Tensors differ from those of another run at the same step.",
                                     .parameters = kParameters,
                                     .make = make};

}  // namespace tornasole::rules
