#pragma once

// Detector: one question asked of a run. Pure: a record in, verdicts out, or why it cannot be asked. One file each;
// listed in check.cc.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rules/check/run_record.h"
#include "tornasole/check.h"

namespace tornasole::rules {

class Judgement {
 public:
  explicit Judgement(std::string_view rule) : rule_(rule) {}
  // Without a name of its own it gets that of the detector. `deeper`: how much further from the root of things than the
  // detector says.
  void add(Verdict verdict, int deeper = 0) {
    if (verdict.rule.empty()) verdict.rule = rule_;
    verdicts_.push_back(std::move(verdict));
    deeper_.push_back(deeper);
  }
  // What the trial would have to hold.
  void cannot(std::string reason) { not_checked_ = std::move(reason); }

  std::vector<Verdict>& verdicts() noexcept { return verdicts_; }
  int deeper(std::size_t verdict) const noexcept { return deeper_[verdict]; }
  const std::string& not_checked() const noexcept { return not_checked_; }

 private:
  std::string rule_;
  std::vector<Verdict> verdicts_;
  std::vector<int> deeper_;  // by verdict
  std::string not_checked_;
};

struct Detector {
  std::string_view name;
  std::string_view question;  // for people
  // Smaller is nearer to the root of things: a verdict may be a symptom of one that is nearer and not later.
  int depth = 0;
  // Whether it happens at a step, so that what comes later cannot be its cause; else it holds for a stretch of steps.
  bool is_event = false;
  // What its verdict may be the cause of, where that is not all that is further from the root.
  std::span<const std::string_view> explains = {};
  void (*look)(const RunRecord& run, Judgement& judgement);
};

extern const Detector kCheckNonFinite;
extern const Detector kCheckLearningRate;
extern const Detector kCheckSilentOptimizer;
extern const Detector kCheckFrozenLayers;
extern const Detector kCheckMissingZeroGrad;
extern const Detector kCheckVanishingGradient;
extern const Detector kCheckDeadRelu;
extern const Detector kCheckSaturation;
extern const Detector kCheckConstantOutput;
extern const Detector kCheckLossTrend;
extern const Detector kCheckOverfit;
extern const Detector kCheckInputRange;
extern const Detector kCheckTrainEval;
extern const Detector kCheckLossInput;
extern const Detector kCheckFeatures;
extern const Detector kCheckPoorStart;
extern const Detector kCheckInitialLoss;
extern const Detector kCheckClassImbalance;
extern const Detector kCheckConfusion;
extern const Detector kCheckLossSpike;
extern const Detector kCheckOscillation;
extern const Detector kCheckReplicas;
extern const Detector kCheckShards;
extern const Detector kCheckWorkerOutlier;
extern const Detector kCheckDataRepeat;
extern const Detector kCheckOvertraining;
extern const Detector kCheckSuspiciousValidation;
extern const Detector kCheckGradNormSpike;
extern const Detector kCheckRank;
extern const Detector kCheckLossScale;
extern const Detector kCheckTreeDepth;

// "Net_fc1.weight and 3 more".
std::string names_text(const std::vector<std::string>& names, std::size_t shown = 1);
Evidence evidence_of(std::string what, const Series& series, std::size_t most = 200);

}  // namespace tornasole::rules
