#pragma once

// RunRecord: a run as the check sees it: for each tensor a few numbers per step, by role.
//
//   in:  the steps of a trial, through Recorder, a rule that only takes notes
//   out: histories that the detectors read; pure data
//   who: check.cc fills it, every detector reads it
//
// Numbers come from stored reductions and derived statistics where there are any, else from values. A number that is
// not known is NaN.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rules/check/tensor_role.h"
#include "rules/tree_shape.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

enum class Column : std::uint8_t {
  kMean,
  kStd,
  kMin,
  kMax,
  kAbsMean,
  kL2,
  kCount,
  kZeros,
  kNan,             // elements that are NaN, of either kind of infinity
  kInf,             //
  kUpdate,          // l2 of the change since the last optimizer step
  kBefore,          // l2 before that change
  kGap,             // optimizer steps the change took
  kCosine,          // with the same tensor at the previous optimizer step
  kQ1,              // quantiles
  kQ5,              //
  kQ50,             //
  kQ95,             //
  kQ99,             //
  kActiveUnits,     // share of the units that are above zero for some sample
  kActivity,        // share of the elements above zero
  kSampleVariance,  // variance over the samples, relative to the mean square, averaged over units
  kSaturated,       // of a bounded activation: what its mean derivative is short of the largest, as a share
  kSamples,         // elements per unit
  kUnits,           //
  kUnitSpread,      // the largest root mean square of a unit over the median one
  kEqualUnits,      // share of the rows of a weight that another row equals, at some steps, where its value is known
  kRank,         // effective rank of a matrix as a share of its smaller side, at some steps, where its value is known
  kUnexplained,  // of predictions of boosted trees: share that is wrong, or of the labels' variance that is left
};
inline constexpr std::size_t kColumnCount = static_cast<std::size_t>(Column::kUnexplained) + 1;

struct StepPoint {
  std::int64_t global_step = 0;
  ModeStep step = {};
  std::int64_t optimizer_step = -1;  // taken before the step began; -1 if nobody said
};

inline constexpr std::int64_t kMostPairedClasses = 256;

// How often labels (rows) and predictions (columns) came together at one step.
struct ClassPairs {
  std::uint32_t point = 0;
  std::size_t classes = 0;
  std::vector<std::int64_t> counts = {};  // classes x classes
};

// One tensor of one worker.
struct History {
  std::string name;
  std::string worker;
  TensorRole role;
  std::optional<Shape> shape = {};                         // the last one seen
  std::vector<std::uint32_t> points = {};                  // places in RunRecord::steps, ascending
  std::vector<std::array<float, kColumnCount>> rows = {};  // one per point
  // Pooled over the last steps: for each unit, the share of samples above zero.
  std::vector<std::vector<float>> unit_activity = {};
  std::vector<std::int64_t> label_counts = {};  // of labels: by class, over all steps that train
  std::vector<ClassPairs> class_pairs = {};     // of predictions: at the last steps

  std::size_t size() const noexcept { return points.size(); }
  double at(Column column, std::size_t row) const noexcept { return rows[row][static_cast<std::size_t>(column)]; }
};

// The trees of one boosting round.
struct RoundTrees {
  std::uint32_t point = 0;
  TreeShape shape = {};
};

// One number per step, without those that are not known.
struct Series {
  std::vector<std::int64_t> steps = {};            // global
  std::vector<std::int64_t> optimizer_steps = {};  // -1 if unknown
  std::vector<double> values = {};
  std::size_t size() const noexcept { return values.size(); }
  bool empty() const noexcept { return values.empty(); }
};

struct RunRecord {
  std::vector<StepPoint> steps = {};
  std::vector<History> histories = {};          // in the order of worker and saving, as first seen
  std::vector<StepFacts> facts = {};            // one per step
  std::vector<std::string> layer_classes = {};  // in lower case, of all modules
  std::string framework = {};                   // as the description of the model says: "pytorch"
  std::string last_layer = {};                  // the class of the one that is called last, in lower case
  bool scales_inputs = false;                   // the model itself, before its first layer with weights
  bool is_fine_tuned = false;                   // some weights learn, others were frozen or no optimizer has them
  bool trains_batch_norm = false;               // an optimizer has what a batch normalisation scales and shifts by
  std::size_t optimizers = 0;
  std::size_t optimizers_of_others = 0;  // those that have no parameter of the model
  double weight_decay = 0;               // the largest of all optimizers
  bool is_decay_decoupled = false;       // taken off the weights beside the gradient's step; else added to the gradient
  // Share of the weights that decay takes off at a step, for each unit of the learning rate; 0 where it is not the same
  // for all, as with adaptive optimizers that have it in the gradient.
  double decay_by_rate = 0;
  double base_rate = std::numeric_limits<double>::quiet_NaN();   // learning rate as the optimizer was made with it
  double plain_rate = std::numeric_limits<double>::quiet_NaN();  // likewise, of one optimizer that is SGD
  double momentum = 0;                                           // the largest of all optimizers
  bool units_last = false;          // a weight has its units along the last axis, as in Keras; else along the first
  bool is_boosting = false;         // trees; each loss is over a whole data set, so it has no noise of mini-batches
  bool weights_after_step = false;  // weights of a step are those that its optimizer step made
  std::set<std::string, std::less<>> optimized = {};                // parameters that an optimizer has
  std::vector<RoundTrees> trees = {};                               // of boosting, where they were saved
  std::map<std::string, double, std::less<>> hyperparameters = {};  // as given to boosting; those that are numbers

  Series series(const History& history, Column column, std::optional<Mode> mode = {}) const;
  // Those of the first worker.
  std::vector<const History*> of_role(Role role) const;
  const History* find(std::string_view name) const noexcept;
  // The loss, one number per step of a mode: the mean over the tensors that are losses. Tensors of several elements
  // count with their mean; one that is not told at a step, as where losses take turns, with what it was last, or will
  // be first. Boosting that never evaluates its training data is known by its other data.
  Series losses(Mode mode, Role role = Role::kLoss) const;
  // The tensors of that role that are about training.
  std::vector<const History*> training_losses() const;
  // The class of the one loss that trains, in lower case; empty if there are several or it is not known.
  std::string loss_class() const;
  // The mode that trains: TRAIN where there is any, else the one without a name.
  Mode training_mode() const noexcept;
};

// Whether a loss compares scores of several classes with a label: cross entropy and negative log likelihood.
bool is_about_classes(std::string_view loss_class) noexcept;

// What rules want of every tensor; more is computed from values where there are any.
inline constexpr StatSet kRecordStats = {Stat::kMean, Stat::kStd, Stat::kMin, Stat::kMax, Stat::kAbsMean, Stat::kL2};
inline constexpr std::size_t kRecordNeeds = 10;  // of the recorder

// Takes notes; finds nothing.
class Recorder final : public Rule {
 public:
  explicit Recorder(const Trial& trial);
  std::vector<Need> needs() const override;
  void look_at(const StepView& step, Findings& findings) override;
  void reset() override;
  const RunRecord& record() const noexcept { return record_; }
  // Takes up what the description of the model says by now.
  void note_model();

 private:
  History& history_of(const StepTensor& tensor, const Trial& trial);
  std::optional<Tensor> pair_values(const StepTensor& predictions, const TensorRole& role,
                                    std::span<const StepTensor* const> tensors) const;
  // Of boosting: the trees of the round, how good its predictions are.
  void note_round(std::span<const StepTensor* const> tensors);
  void note_hyperparameter(const StepTensor& tensor);
  void note_quality(History& history, const StepTensor& predictions, std::span<const StepTensor* const> tensors,
                    std::array<float, kColumnCount>* row);
  void note_update(History& history, const StepTensor& tensor, std::array<float, kColumnCount>* row);
  void note_update_by_stats(const History& history, std::array<float, kColumnCount>* row) const;

  const Trial& trial_;
  RunRecord record_;
  std::map<std::pair<std::string, std::string>, std::size_t, std::less<>> places_;  // (worker, name) -> history
  struct Kept {
    std::shared_ptr<const Tensor> value;
    std::uint32_t point;
  };
  std::map<std::size_t, Kept> previous_;  // history -> its last value, where it is needed
  std::size_t names_known_ = 0;
  std::unique_ptr<RoleFinder> roles_;
};

}  // namespace tornasole::rules
