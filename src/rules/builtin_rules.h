#pragma once

// The rules that can be made by name: each is one file that defines its type here.

#include "tornasole/rule.h"

namespace tornasole::rules {

extern const RuleType kVanishingGradient;
extern const RuleType kExplodingTensor;
extern const RuleType kPoorWeightInitialization;
extern const RuleType kSaturatedActivation;
extern const RuleType kDeadRelu;
extern const RuleType kWeightUpdateRatio;
extern const RuleType kTensorVariance;
extern const RuleType kUnchangedTensor;
extern const RuleType kAllZero;
extern const RuleType kSimilarAcrossRuns;
extern const RuleType kCheckInputImages;
extern const RuleType kNlpSequenceRatio;
extern const RuleType kNonFiniteProvenance;
extern const RuleType kFormatRange;
extern const RuleType kLossScaleCollapse;
extern const RuleType kDormantUnits;
extern const RuleType kDeadByActivity;
extern const RuleType kSaturationHistogram;
extern const RuleType kActivationOutlier;
extern const RuleType kGradientOutlier;
extern const RuleType kDepthProfile;
extern const RuleType kConstantOutput;
extern const RuleType kSilentOptimizer;
extern const RuleType kFrozenLayers;
extern const RuleType kMissingZeroGrad;
extern const RuleType kLearningRateSanity;
extern const RuleType kWeightDivergence;
extern const RuleType kSymmetricUnits;
extern const RuleType kRankCollapse;

}  // namespace tornasole::rules
