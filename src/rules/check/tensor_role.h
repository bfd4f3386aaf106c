#pragma once

// TensorRole: what a tensor is in the model it comes from.
//
//   in:  the model description a hook stored, the collections, the name
//   out: the role, with parameter, layer and position where they are known
//   who: run_record.cc, for each name once
//
// The description decides. Without one (runs of other writers) collections and names have to do.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/trial.h"

namespace tornasole::rules {

enum class Role : std::uint8_t {
  kOther,
  kWeight,             // a parameter of two or more dimensions
  kBias,               // any other parameter
  kGradient,           // of one backward pass
  kOptimizerGradient,  // as the optimizer saw it
  kGradientBefore,     // the largest magnitude that a parameter's gradient had before a backward pass added to it
  kOptimizerState,
  kLoss,
  kValidationLoss,  // of a data set that does not train, where one step has both
  kModelInput,
  kLabels,
  kPredictions,
  kLayerInput,
  kLayerOutput,
  kLearningRate,
  kLossSign,  // -1 where a backward pass starts from a loss with its sign turned round
  kGradNorm,
  kMetric,
  kImportance,      // of a feature: its share of the gain
  kTreeTable,       // a column of the table of a boosting round's trees
  kHyperparameter,  // a number the training was given
};

struct TensorRole {
  Role role = Role::kOther;
  std::string parameter = {};    // of a parameter, gradient or state: the parameter's name
  std::string layer = {};        // path of the module it belongs to
  std::string layer_class = {};  // in lower case: "linear", "relu", "batchnorm2d"; of a function: its name
  std::int64_t order = -1;       // of the layer among all layers, as far as it is known
  std::int64_t rank = -1;        // of the parameter
  Shape shape = {};              // of the parameter, where the description says it
  std::string loss_class = {};   // of a loss and of what goes into it, in lower case: "crossentropyloss", "mse_loss"
  bool requires_grad = true;
  bool is_shard = false;         // of a parameter: each worker holds another part of it
  std::int64_t call_order = -1;  // of a parameter: when its layer is called in a step; -1 if it is not, or nobody said
};

class RoleFinder {
 public:
  explicit RoleFinder(const Trial& trial);
  RoleFinder(const RoleFinder&) = delete;
  RoleFinder& operator=(const RoleFinder&) = delete;
  TensorRole role_of(std::string_view name) const;
  // Null if the trial does not say what its tensors are.
  const ModelDescription* model() const noexcept { return model_ ? &*model_ : nullptr; }

 private:
  struct Layer {
    std::string type, activation;
    std::int64_t order;
    std::int64_t call_order;
  };
  struct ParameterFacts {
    const ModelDescription::Parameter* parameter;
    std::int64_t order;
  };
  TensorRole parameter_role(std::string_view parameter) const;
  TensorRole layer_role(std::string_view name) const;
  TensorRole loss_role(std::string_view name) const;
  bool is_of_training_data(std::string_view name) const;
  bool is_in(std::string_view collection, std::string_view name) const;

  std::optional<ModelDescription> model_ = {};  // its own: a refresh of the trial may bring another
  std::map<std::string, Layer, std::less<>> layers_;
  std::map<std::string, ParameterFacts, std::less<>> parameters_;
  std::map<std::string, std::string, std::less<>> by_gradient_;  // Keras: name of a gradient -> parameter
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> collections_;
  std::map<std::string, TensorRole, std::less<>> of_losses_;  // losses and what goes into them
  std::set<std::string, std::less<>> inputs_;
  std::string training_data_;  // name of the evaluation set that trains, where boosting says it
};

}  // namespace tornasole::rules
