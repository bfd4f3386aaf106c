#pragma once

// TensorRoles: what the model description says of tensors, by name. Derived statistics ask it, since values do not tell
// a label from a weight. Guarded by the hook's mutex.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reduce/value_range.h"
#include "tornasole/model.h"

namespace tornasole::capture {

class TensorRoles {
 public:
  // Labels and the predictions made for them.
  struct ClassPair {
    std::string labels, predictions;
  };

  TensorRoles();
  void describe(const ModelDescription& model);

  std::optional<reduce::ValueRange> bounds_of(std::string_view tensor) const;
  // A parameter of the model, or its gradient of either kind.
  bool is_parameter_or_gradient(std::string_view tensor) const;
  // Besides those described, the tensors `labels` and `predictions`, which frameworks name so.
  const std::vector<ClassPair>& class_pairs() const noexcept { return pairs_; }
  bool is_label(std::string_view tensor) const { return labels_.contains(tensor); }
  bool is_prediction(std::string_view tensor) const { return predictions_.contains(tensor); }

 private:
  void add_pair(std::string labels, std::string predictions);

  std::map<std::string, reduce::ValueRange, std::less<>> bounds_;
  std::set<std::string, std::less<>> parameters_;
  std::set<std::string, std::less<>> labels_;
  std::set<std::string, std::less<>> predictions_;
  std::vector<ClassPair> pairs_;
};

}  // namespace tornasole::capture
