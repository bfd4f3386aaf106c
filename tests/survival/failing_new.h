#pragma once

// Allocation that fails on purpose. Only survival_alloc really has it; elsewhere these do nothing.

namespace tornasole::survival {

// From now on the n-th counted allocation fails, and all later ones too if `is_lasting`. 0: none.
void arm_failing_new(long n, bool is_lasting);

// While one of these lives, allocations of this thread are neither counted nor failed: the training's own memory.
class ExemptFromFailingNew {
 public:
  ExemptFromFailingNew();
  ~ExemptFromFailingNew();
  ExemptFromFailingNew(const ExemptFromFailingNew&) = delete;
  ExemptFromFailingNew& operator=(const ExemptFromFailingNew&) = delete;

 private:
  [[maybe_unused]] bool was_exempt_;
};

}  // namespace tornasole::survival
