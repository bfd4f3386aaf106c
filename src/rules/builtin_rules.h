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

}  // namespace tornasole::rules
