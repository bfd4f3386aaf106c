// NonFiniteProvenance: where the first NaN or infinity of a run began.
//
//   1. Every step: which tensors are not finite, by the part they play; the largest magnitudes of the others are kept.
//   2. The first step with any is the one that is judged. Parts are tried in the order in which damage travels: input,
//      weight, forward, loss, backward, optimizer; within a part the tensor that was saved first.
//   3. A loss can only be to blame if outputs were seen, a gradient only if outputs or losses were, the optimizer only
//      if gradients were; else the origin is unknown.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "base/json.h"
#include "base/utf8.h"
#include "rules/builtin_rules.h"
#include "rules/model_roles.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::array<Parameter, 0> kParameters = {};
constexpr std::size_t kHistory = 3;  // steps before the first bad one

enum class Part : std::uint8_t { kInput, kWeight, kForward, kLoss, kBackward, kOptimizer, kOther };
constexpr std::array<std::string_view, 7> kPartNames = {"input",    "weight",    "forward", "loss",
                                                        "backward", "optimizer", "unknown"};

// The largest finite number of a floating-point type; nothing for others.
std::optional<double> largest_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 65504;
    case DType::kBfloat16: return 0x1.fep127;
    case DType::kFloat8E4m3fn: return 448;
    case DType::kFloat8E5m2: return 57344;
    case DType::kFloat32:
    case DType::kComplex64: return static_cast<double>(std::numeric_limits<float>::max());
    case DType::kFloat64:
    case DType::kComplex128: return std::numeric_limits<double>::max();
    default: return std::nullopt;
  }
}

// Of the value, or as far as stored reductions tell.
bool is_non_finite(const StepTensor& tensor) {
  if (tensor.stats.has(Stat::kNan)) return *tensor.stats[Stat::kFirstNonFinite] >= 0;
  return std::ranges::any_of(tensor.reductions, [](const auto& stored) { return !std::isfinite(stored.second); });
}
bool was_seen(const StepTensor& tensor) { return tensor.stats.has(Stat::kNan) || !tensor.reductions.empty(); }

class NonFiniteProvenance final : public Rule {
 public:
  explicit NonFiniteProvenance(const RuleContext& context) : inputs_(input_names(context.base)) {}

  std::vector<Need> needs() const override {
    const StatSet stats = {Stat::kNan, Stat::kPosInf, Stat::kNegInf, Stat::kFirstNonFinite, Stat::kAbsMax};
    const auto part = [&](std::vector<std::string> collections, std::vector<std::string> regex) {
      return Need{.collections = std::move(collections),
                  .regex = std::move(regex),
                  .exclude_regex = {"^derived/"},
                  .stats = stats,
                  .reductions_without_value = true};
    };
    // By part, in their order; then everything.
    std::vector<Need> needs = {part({"inputs"}, {}),
                               part({"weights", "biases"}, {}),
                               part({}, {std::string(kOutputRegex)}),
                               part({"losses"}, {}),
                               part({"gradients", "optimizer_gradients"}, {"^(optimizer_)?gradient/"}),
                               part({"optimizer_variables"}, {"^optimizer_state/"}),
                               part({}, {})};
    needs[0].names = inputs_;
    return needs;
  }

  void look_at(const StepView& step, Findings& findings) override {
    if (is_found_) return;
    std::map<std::string_view, Worker> workers;
    std::map<const StepTensor*, Part> parts;
    // A loss is an output, too: the later of two parts holds, but for model inputs, which come first.
    for (const auto part :
         {Part::kForward, Part::kLoss, Part::kBackward, Part::kOptimizer, Part::kWeight, Part::kInput}) {
      for (const StepTensor* tensor : step.tensors(static_cast<std::size_t>(part))) parts[tensor] = part;
    }
    for (const StepTensor* tensor : step.tensors(static_cast<std::size_t>(Part::kOther))) {
      if (!was_seen(*tensor)) {
        findings.skip(tensor->dtype == DType::kString ? "text" : "no value");
        continue;
      }
      findings.count_datapoint();
      const auto found = parts.find(tensor);
      const Part part = found == parts.end() ? Part::kOther : found->second;
      Worker& worker = workers[tensor->worker];
      worker.seen[static_cast<std::size_t>(part)] = true;
      const StepTensor*& first = worker.bad[static_cast<std::size_t>(part)];
      if (first == nullptr && is_non_finite(*tensor)) first = tensor;
    }
    for (const auto& [name, worker] : workers) {
      if (const auto origin = origin_of(worker)) report(*origin, step, findings);
    }
    if (is_found_) return;
    for (const StepTensor* tensor : step.tensors(static_cast<std::size_t>(Part::kOther))) remember(*tensor, step);
  }

  std::map<std::string, std::string> details() const override {
    if (!is_found_) return {};
    std::map<std::string, std::string> details;
    details["origins"] = "[" + origins_ + "]";
    return details;
  }

  void reset() override {
    is_found_ = false;
    origins_.clear();
    largest_.clear();
  }

 private:
  struct Worker {
    std::array<bool, 7> seen = {};              // by part
    std::array<const StepTensor*, 7> bad = {};  // by part: the first that is not finite
  };
  struct Origin {
    Part part = Part::kOther;
    const StepTensor* tensor = nullptr;
  };
  struct Largest {
    std::int64_t step = 0;
    double magnitude = 0;
    std::optional<double> share = {};  // of the largest number of its type
  };

  static std::optional<Origin> origin_of(const Worker& worker) {
    const auto seen = [&](Part part) { return worker.seen[static_cast<std::size_t>(part)]; };
    for (std::size_t i = 0; i < worker.bad.size(); ++i) {
      if (worker.bad[i] == nullptr) continue;
      const auto part = static_cast<Part>(i);
      const bool can_tell = part == Part::kLoss        ? seen(Part::kForward)
                            : part == Part::kBackward  ? seen(Part::kForward) || seen(Part::kLoss)
                            : part == Part::kOptimizer ? seen(Part::kBackward)
                                                       : true;
      return Origin{can_tell ? part : Part::kOther, worker.bad[i]};
    }
    return std::nullopt;
  }

  void report(const Origin& origin, const StepView& step, Findings& findings) {
    const StepTensor& tensor = *origin.tensor;
    const auto count = [&](Stat stat) { return static_cast<std::int64_t>(tensor.stats[stat].value_or(0)); };
    const std::string_view part = kPartNames[static_cast<std::size_t>(origin.part)];
    std::string json;
    JsonWriter writer(&json);
    writer.begin_object().key("step").value(step.global_step().number).key("verdict").value(part);
    writer.key("tensor").value(tensor.name).key("worker").value(tensor.worker);
    if (tensor.stats.has(Stat::kNan)) {
      writer.key("nan").value(count(Stat::kNan)).key("positive_infinite").value(count(Stat::kPosInf));
      writer.key("negative_infinite").value(count(Stat::kNegInf));
      writer.key("first_element").value(count(Stat::kFirstNonFinite));
    }
    writer.key("before").begin_array();
    std::string before;
    for (const Largest& largest : largest_.of(tensor)) {
      writer.begin_object().key("step").value(largest.step).key("largest").value(largest.magnitude);
      if (largest.share) writer.key("share_of_format").value(*largest.share);
      writer.end_object();
      before += fmt::format("{}{:g}", before.empty() ? "; largest magnitudes before: " : ", ", largest.magnitude);
    }
    writer.end_array().end_object();
    origins_ += (origins_.empty() ? "" : ", ") + json;
    is_found_ = true;
    const std::string what = tensor.stats.has(Stat::kNan) ? fmt::format("{} NaN, {} +Inf, {} -Inf", count(Stat::kNan),
                                                                        count(Stat::kPosInf), count(Stat::kNegInf))
                                                          : "a stored reduction is not finite";
    findings.add(
        &tensor, {}, {},
        fmt::format("{}: the first that is not finite ({}): {}{}", printable(tensor.name), part, what, before));
  }

  void remember(const StepTensor& tensor, const StepView& step) {
    const auto magnitude = tensor.stats[Stat::kAbsMax];
    if (!magnitude) return;
    std::deque<Largest>& kept = largest_.of(tensor);
    const auto limit = tensor.dtype ? largest_of(*tensor.dtype) : std::nullopt;
    kept.push_back({step.global_step().number, *magnitude, limit ? std::optional(*magnitude / *limit) : std::nullopt});
    if (kept.size() > kHistory) kept.pop_front();
  }

  std::vector<std::string> inputs_;
  bool is_found_ = false;
  std::string origins_;  // JSON objects, one per worker
  TensorStates<std::deque<Largest>> largest_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& /*arguments*/, const RuleContext& context) {
  return std::unique_ptr<Rule>(std::make_unique<NonFiniteProvenance>(context));
}

}  // namespace

const RuleType kNonFiniteProvenance = {
    .name = "NonFiniteProvenance",
    .group = "detectors",
    .summary = "The first NaN or infinity of the run, and where it began: input, weight, forward, loss or backward.",
    .parameters = kParameters,
    .make = make};

}  // namespace tornasole::rules
