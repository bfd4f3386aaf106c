// CheckInputImages: the pixels of input images are not centred around zero.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_numbers.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"threshold_mean", ParameterType::kNumber, "0.2", "How far the mean of a channel may be from zero"},
    Parameter{"threshold_samples", ParameterType::kInteger, "500", "So many images are looked at together"},
    Parameter{"regex", ParameterType::kText, ".*hybridsequential0_input_0", "A pattern for the names of the images"},
    Parameter{"channel", ParameterType::kInteger, "1", "The axis of the colour channels"},
};

class CheckInputImages final : public Rule {
 public:
  explicit CheckInputImages(const RuleArguments& arguments)
      : regex_(arguments.text("regex")),
        threshold_(arguments.number("threshold_mean")),
        samples_(arguments.integer("threshold_samples")),
        axis_(static_cast<std::size_t>(arguments.integer("channel"))) {}

  std::vector<Need> needs() const override {
    return {{.regex = {regex_}, .exclude_regex = exclude_statistics({regex_}), .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* images : step.tensors()) {
      const Tensor* value = numeric_value(*images, findings);
      if (value == nullptr) continue;
      findings.count_datapoint();
      Images& seen = seen_.of(*images);
      add(*value, &seen);
      if (seen.samples < samples_) continue;
      judge(*images, seen, findings);
      seen = {};
    }
  }

  void reset() override { seen_.clear(); }

 private:
  struct Images {
    std::int64_t samples = 0;
    std::vector<double> sums = {};  // by channel
    std::int64_t elements = 0;      // of each channel
  };

  void add(const Tensor& value, Images* seen) const {
    const Shape& shape = value.shape();
    std::int64_t channels = 1;
    std::int64_t inner = shape.element_count();
    if (axis_ < shape.rank()) {
      channels = shape[axis_];
      inner = 1;
      for (std::size_t axis = axis_ + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
    }
    // Images of another kind do not go with those before.
    if (seen->sums.size() != static_cast<std::size_t>(channels)) {
      *seen = {.sums = std::vector<double>(static_cast<std::size_t>(channels), 0.0)};
    }
    std::size_t channel = 0;
    std::int64_t in_run = 0;
    for_each_number(value, [&](double number) {
      seen->sums[channel] += number;
      if (++in_run == inner) {
        in_run = 0;
        if (++channel == seen->sums.size()) channel = 0;
      }
      return true;
    });
    seen->samples += shape.rank() == 0 ? 1 : shape[0];
    seen->elements += shape.element_count() / channels;
  }

  void judge(const StepTensor& images, const Images& seen, Findings& findings) const {
    std::optional<std::size_t> worst;
    double furthest = threshold_;
    for (std::size_t channel = 0; channel < seen.sums.size(); ++channel) {
      const double distance = std::fabs(seen.sums[channel] / static_cast<double>(seen.elements));
      if (distance > furthest) {
        worst = channel;
        furthest = distance;
      }
    }
    if (!worst) return;
    const double mean = seen.sums[*worst] / static_cast<double>(seen.elements);
    findings.add(&images, mean, threshold_,
                 fmt::format("{}: the mean of channel {} over {} images is {:g}, more than {:g} from zero",
                             printable(images.name), *worst, seen.samples, mean, threshold_));
  }

  std::string regex_;
  double threshold_;
  std::int64_t samples_;
  std::size_t axis_;
  TensorStates<Images> seen_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least("CheckInputImages", arguments, "channel", 0));
  return std::unique_ptr<Rule>(std::make_unique<CheckInputImages>(arguments));
}

}  // namespace

const RuleType kCheckInputImages = {.name = "CheckInputImages",
                                    .group = "applications",
                                    .summary = "Input images are not centred around zero.",
                                    .parameters = kParameters,
                                    .make = make};

}  // namespace tornasole::rules
