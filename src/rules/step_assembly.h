#pragma once

// StepAssembly: the values of one step, as a sweep hands them over, put together as the tensors that rules see.
//
//   in:  swept values of one global step, in any order of forms; the plan of each name
//   out: one StepTensor per tensor and worker, and for each need those that match it
//   who: pass.cc

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rules/name_plans.h"

namespace tornasole::rules {

// What is asked of a value besides the value itself.
struct ValueDigest {
  Shape shape = {};
  DType dtype = {};
  std::optional<Stats> stats = {};
  std::vector<std::pair<std::string_view, std::shared_ptr<const Tensor>>> derived = {};
};
// For threads that read. The statistics' names are the plan's.
std::shared_ptr<ValueDigest> digest_value(const TensorView& value, const NamePlan& plan);

class StepAssembly {
 public:
  explicit StepAssembly(std::size_t need_count) : matches_(need_count) {}

  // `first_worker_only`: of a tensor that was taken from one worker, those of others are left out.
  void add(const SweptValue& swept, const NamePlan& plan, bool first_worker_only);
  bool empty() const noexcept { return tensors_.empty(); }
  // By need; valid until clear.
  std::span<const std::vector<const StepTensor*>> match();
  void clear();

 private:
  struct Slot {
    StepTensor tensor = {};
    const NamePlan* plan = nullptr;
  };
  // Null if it is of another worker than the first.
  StepTensor* find_or_add(std::string_view name, const SweptValue& swept, const NamePlan* plan, bool first_worker_only);

  std::vector<Slot> tensors_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;  // places in tensors_, one per worker
  std::vector<std::vector<const StepTensor*>> matches_;
};

}  // namespace tornasole::rules
