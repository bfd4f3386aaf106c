// FormatRange: what a narrower number format would lose of a tensor.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/builtin_rules.h"
#include "rules/captured_names.h"
#include "rules/tensor_choice.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

constexpr std::array kParameters = {
    Parameter{"collection_names", ParameterType::kList, "",
              "Collections to look at; with no pattern either: everything"},
    kTensorRegex,
    Parameter{"format", ParameterType::kText, "fp16", "fp16, bf16, fp8_e4m3 or fp8_e5m2"},
    Parameter{"scale", ParameterType::kNumber, "1.0", "Elements are multiplied by this first"},
    Parameter{"max_overflow", ParameterType::kNumber, "0.0",
              "The percentage of the elements that may lie beyond the largest number of the format"},
    Parameter{"max_underflow", ParameterType::kNumber, "50",
              "The percentage of the elements other than zero that may become zero"},
};

struct Format {
  std::string_view name;
  double largest, normal, tiny;
};
constexpr std::array<Format, 4> kFormats = {{
    {"fp16", 65504, 0x1p-14, 0x1p-24},
    {"bf16", 0x1.fep127, 0x1p-126, 0x1p-133},
    {"fp8_e4m3", 448, 0x1p-6, 0x1p-9},
    {"fp8_e5m2", 57344, 0x1p-14, 0x1p-16},
}};

struct Loss {
  double overflow = 0, underflow = 0, subnormal = 0;  // percent
  double dynamic_range = 0;                           // bits
};

Loss loss_of(const Tensor& value, const Format& format, double scale) {
  std::int64_t over = 0;
  std::int64_t under = 0;
  std::int64_t subnormal = 0;
  std::int64_t nonzero = 0;
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  for_each_number(value, [&](double number) {
    const double size = std::fabs(number * scale);
    if (size == 0 || std::isnan(size)) return true;
    ++nonzero;
    if (size > format.largest) ++over;
    if (size <= format.tiny / 2) {
      ++under;
    } else if (size < format.normal) {
      ++subnormal;
    }
    smallest = std::min(smallest, size);
    largest = std::max(largest, size);
    return true;
  });
  if (nonzero == 0) return {};
  const auto share = [](std::int64_t part, std::int64_t all) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(all);
  };
  return {share(over, value.element_count()), share(under, nonzero), share(subnormal, nonzero),
          std::log2(largest) - std::log2(smallest)};
}

class FormatRange final : public Rule {
 public:
  explicit FormatRange(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)),
        format_(*std::ranges::find(kFormats, arguments.text("format"), &Format::name)),
        scale_(arguments.number("scale")),
        max_overflow_(arguments.number("max_overflow")),
        max_underflow_(arguments.number("max_underflow")) {}

  std::vector<Need> needs() const override {
    return {{.collections = choice_.collections,
             .regex = choice_.regex,
             .exclude_regex = exclude_statistics(choice_.regex),
             .value = true}};
  }

  void look_at(const StepView& step, Findings& findings) override {
    for (const StepTensor* tensor : step.tensors()) {
      const Tensor* value = numeric_value(*tensor, findings);
      if (value == nullptr) continue;
      if (!dtype_is_inexact(value->dtype())) {
        findings.skip("integers");
        continue;
      }
      findings.count_datapoint();
      const Loss loss = loss_of(*value, format_, scale_);
      const std::string range =
          fmt::format("{:g} % subnormal, {:.1f} bits between smallest and largest", loss.subnormal, loss.dynamic_range);
      if (loss.overflow > max_overflow_) {
        findings.add(tensor, loss.overflow, max_overflow_,
                     fmt::format("{}: {:g} % of the elements overflow in {}, more than {:g} % ({})",
                                 printable(tensor->name), loss.overflow, format_.name, max_overflow_, range));
      }
      if (loss.underflow > max_underflow_) {
        findings.add(tensor, loss.underflow, max_underflow_,
                     fmt::format("{}: {:g} % of the elements become zero in {}, more than {:g} % ({})",
                                 printable(tensor->name), loss.underflow, format_.name, max_underflow_, range));
      }
    }
  }

  void reset() override {}

 private:
  TensorChoice choice_;
  Format format_;
  double scale_, max_overflow_, max_underflow_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  constexpr std::array<std::string_view, 4> kNames = {kFormats[0].name, kFormats[1].name, kFormats[2].name,
                                                      kFormats[3].name};
  TORNASOLE_CHECK(check_word("FormatRange", arguments, "format", kNames));
  return std::unique_ptr<Rule>(std::make_unique<FormatRange>(arguments));
}

}  // namespace

const RuleType kFormatRange = {
    .name = "FormatRange",
    .group = "detectors",
    .summary = "A narrower number format would lose too much of a tensor: large numbers overflow, small ones vanish.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
