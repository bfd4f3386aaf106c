#pragma once

// Where a tensor lies at one step: the parts of the step, worker by worker.

#include <cstdint>
#include <vector>

#include "tornasole/mode.h"
#include "trial/index_columns.h"

namespace tornasole::trial {

struct Place {
  const Part* part = nullptr;
  const Location* location = nullptr;
};

// Calls back for every part of the step, in the order they were added. A step of a mode that was written several times
// (a resumed run) has the parts of all of them.
template <typename OnPart>
void for_each_part(const IndexColumns& columns, ModeStep step, OnPart on_part) {
  for (const std::int64_t global : columns.global_steps(step)) {
    const StepRow* row = columns.find_step(global);
    if (row == nullptr) continue;
    for (std::uint32_t id = row->first_part; id != kNoPart; id = columns.part(id).next) {
      const Part& part = columns.part(id);
      if (step.mode == Mode::kGlobal || (part.mode == step.mode && part.mode_step == step.number)) on_part(part);
    }
  }
}

// Workers that saved the tensor in any form at the step, sorted by name.
std::vector<std::uint32_t> workers_with(const IndexColumns& columns, std::uint32_t tensor, ModeStep step);
// The series as that worker saved it, nothing if it did not.
Place find_place(const IndexColumns& columns, Series series, ModeStep step, std::uint32_t worker);
// All reductions the worker saved, sorted; those of unknown names are left out.
std::vector<Series> stored_reductions(const IndexColumns& columns, std::uint32_t tensor, ModeStep step,
                                      std::uint32_t worker);
// Whether the worker saved reductions of any name.
bool has_reductions(const IndexColumns& columns, std::uint32_t tensor, ModeStep step, std::uint32_t worker);
// Tensors at a step, whoever saved them: one flag per tensor.
std::vector<bool> tensors_at(const IndexColumns& columns, ModeStep step);

}  // namespace tornasole::trial
