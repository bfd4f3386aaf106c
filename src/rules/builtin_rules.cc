#include "rules/builtin_rules.h"

#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/invariant_check.h"

namespace tornasole {
namespace {

// Without case and underscores.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

}  // namespace

std::span<const RuleType> builtin_rules() {
  // clang-format off
  static const std::vector<RuleType> all = {
      rules::kVanishingGradient,
      rules::kExplodingTensor,
      rules::kPoorWeightInitialization,
      rules::kSaturatedActivation,
      rules::kDeadRelu,
      rules::kWeightUpdateRatio,
      rules::kTensorVariance,
      rules::kUnchangedTensor,
      rules::kAllZero,
      rules::kClassImbalance,
      rules::kLossNotDecreasing,
      rules::kOverfit,
      rules::kOvertraining,
      rules::kSimilarAcrossRuns,
      rules::kStalledTraining,
      rules::kCheckInputImages,
      rules::kNlpSequenceRatio,
      rules::kConfusion,
      rules::kFeatureImportanceOverweight,
      rules::kTreeDepth,
      rules::kCreateXgboostReport,
      rules::kLossSpike,
      rules::kGradNormSpike,
      rules::kLossDivergence,
      rules::kOscillatingLoss,
      rules::kPlateau,
      rules::kSuspiciousValidation,
      rules::kInitialLoss,
      rules::kNonFiniteProvenance,
      rules::kFormatRange,
      rules::kLossScaleCollapse,
      rules::kDormantUnits,
      rules::kDeadByActivity,
      rules::kSaturationHistogram,
      rules::kActivationOutlier,
      rules::kGradientOutlier,
      rules::kDepthProfile,
      rules::kConstantOutput,
      rules::kSilentOptimizer,
      rules::kFrozenLayers,
      rules::kMissingZeroGrad,
      rules::kLearningRateSanity,
      rules::kWeightDivergence,
      rules::kSymmetricUnits,
      rules::kRankCollapse,
      rules::kReplicaDivergence,
      rules::kWorkerOutlier,
      rules::kDuplicateShards,
      rules::kDataRepeat,
      rules::kInputRange,
      rules::kLabelEntropy,
      rules::kTrainEvalMismatch,
      rules::kInvariantCheck,
  };
  // clang-format on
  return all;
}

Result<const RuleType*> find_rule(std::string_view name) {
  const std::string wanted = plain(name);
  std::string known;
  for (const RuleType& type : builtin_rules()) {
    if (plain(type.name) == wanted) return &type;
    if (!known.empty()) known += ", ";
    known += type.name;
  }
  return not_found_error("no rule \"{}\"; rules: {}", printable(name), known);
}

Result<NamedRule> make_rule(std::string_view name, const std::map<std::string, std::string>& parameters,
                            const RuleContext& context) {
  TORNASOLE_TRY(const RuleType* type, find_rule(name));
  TORNASOLE_TRY(const RuleArguments arguments, RuleArguments::make(type->name, type->parameters, parameters));
  TORNASOLE_TRY(std::unique_ptr<Rule> rule, type->make(arguments, context));
  return NamedRule{.name = std::string(type->name), .parameters = arguments.to_lines(), .rule = std::move(rule)};
}

}  // namespace tornasole
