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
extern const RuleType kClassImbalance;
extern const RuleType kLossNotDecreasing;
extern const RuleType kOverfit;
extern const RuleType kOvertraining;
extern const RuleType kSimilarAcrossRuns;
extern const RuleType kStalledTraining;
extern const RuleType kCheckInputImages;
extern const RuleType kNlpSequenceRatio;
extern const RuleType kConfusion;
extern const RuleType kFeatureImportanceOverweight;
extern const RuleType kTreeDepth;
extern const RuleType kCreateXgboostReport;
extern const RuleType kLossSpike;
extern const RuleType kGradNormSpike;
extern const RuleType kLossDivergence;
extern const RuleType kOscillatingLoss;
extern const RuleType kPlateau;
extern const RuleType kSuspiciousValidation;
extern const RuleType kInitialLoss;
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
extern const RuleType kReplicaDivergence;
extern const RuleType kWorkerOutlier;
extern const RuleType kDuplicateShards;
extern const RuleType kDataRepeat;
extern const RuleType kInputRange;
extern const RuleType kLabelEntropy;
extern const RuleType kTrainEvalMismatch;

}  // namespace tornasole::rules
