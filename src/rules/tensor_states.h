#pragma once

// TensorStates: what a rule keeps between steps of each tensor of each worker.

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "tornasole/rule.h"

namespace tornasole::rules {

template <typename State>
class TensorStates {
 public:
  // Made empty at first.
  State& of(const StepTensor& tensor, Mode mode = Mode::kGlobal) { return of(tensor.name, tensor.worker, mode); }
  State& of(std::string_view name, std::string_view worker, Mode mode = Mode::kGlobal) {
    const auto found = states_.find(View(name, worker, mode));
    if (found != states_.end()) return found->second;
    return states_[Key(name, worker, mode)];
  }
  void clear() { states_.clear(); }
  auto begin() const { return states_.begin(); }
  auto end() const { return states_.end(); }

 private:
  using Key = std::tuple<std::string, std::string, Mode>;
  using View = std::tuple<std::string_view, std::string_view, Mode>;
  std::map<Key, State, std::less<>> states_;
};

}  // namespace tornasole::rules
