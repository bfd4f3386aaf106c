#pragma once

// IndexColumns: everything the index files say, in memory, at some twenty bytes for each value.
//
//   a part   one index file: the values of one worker at one step
//   a step   all parts with one global step
//
// What two files say differently is settled by the order in which they were added: the first one says which mode a step
// belongs to, the last one where a value lies.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/mode.h"
#include "trial/index_tables.h"
#include "trial/step_facts_column.h"

namespace tornasole::trial {

inline constexpr std::uint32_t kNoPart = UINT32_MAX;

struct Part {
  std::int64_t global_step = 0;
  std::int64_t mode_step = 0;
  const Location* locations = nullptr;  // one per series of the layout
  std::uint32_t layout = 0;
  std::uint32_t worker = 0;
  std::uint32_t next = kNoPart;  // the next part of the same step, in the order they were added
  std::uint32_t event_file = 0;  // 0: the usual name; else a path of its own
  Mode mode = Mode::kGlobal;
  bool is_partial = false;
};

struct StepRow {
  std::int64_t number = 0;     // global
  std::int64_t mode_step = 0;  // as the first part says
  std::uint32_t first_part = kNoPart;
  std::uint32_t last_part = kNoPart;
  std::uint32_t worker_count = 0;  // different ones
  Mode mode = Mode::kGlobal;
  bool is_partial = false;   // one of its parts is
  bool is_ascending = true;  // its parts, by worker
};

// One index file, as it is added.
struct NewPart {
  std::int64_t global_step = 0;
  std::uint32_t worker = 0;
  std::int64_t mode_step = 0;
  const Location* locations = nullptr;
  std::uint32_t layout = 0;
  Mode mode = Mode::kGlobal;
  bool is_partial = false;
  std::string event_file = {};
  StepFacts facts = {};
};

class IndexColumns {
 public:
  // In the order in which later ones are to win.
  void add(std::vector<NewPart> parts);
  // The id of a worker by its name in files.
  std::uint32_t intern_worker(std::string_view file_name);

  const std::vector<StepRow>& steps() const noexcept { return steps_; }  // ascending
  const StepRow* find_step(std::int64_t global_step) const noexcept;
  // Mode steps of a mode other than kGlobal, ascending, each once.
  std::vector<std::int64_t> mode_steps(Mode mode) const;
  bool has_mode(Mode mode) const noexcept;
  // Of all steps that say so, in the order they were added; the first is the one a mode step stands for.
  std::vector<std::int64_t> global_steps(ModeStep step) const;
  std::optional<std::int64_t> global_step(ModeStep step) const;
  // The smallest known step of the mode that is at least `step`, kGlobal included.
  std::optional<std::int64_t> next_step(ModeStep step) const;
  std::optional<std::int64_t> last_step(Mode mode) const;

  std::size_t part_count() const noexcept { return parts_.size(); }
  const Part& part(std::uint32_t id) const noexcept { return parts_[id]; }
  std::uint32_t part_id(const Part& part) const noexcept { return static_cast<std::uint32_t>(&part - parts_.data()); }
  std::string event_path(const Part& part) const;
  const StepFactsColumn& facts() const noexcept { return facts_; }

  std::size_t worker_count() const noexcept { return workers_.size(); }
  const std::string& worker_file_name(std::uint32_t worker) const noexcept { return workers_[worker].file_name; }
  const std::string& worker_name(std::uint32_t worker) const noexcept { return workers_[worker].name; }
  std::optional<std::uint32_t> find_worker(std::string_view name) const noexcept;

  IndexTables& tables() noexcept { return tables_; }
  const IndexTables& tables() const noexcept { return tables_; }
  LocationArena& arena() noexcept { return arena_; }

  // A tensor is known once a part has it, whatever the tables hold.
  std::optional<std::uint32_t> find_tensor(std::string_view name) const noexcept;
  bool is_known(std::uint32_t tensor) const noexcept { return tensor < is_known_.size() && is_known_[tensor]; }
  // Per tensor: whether a part of the mode has it.
  std::vector<bool> tensors_of_mode(Mode mode) const;

  std::int64_t size_bytes() const noexcept;

 private:
  struct Worker {
    std::string file_name;
    std::string name;  // as shown to users
  };
  struct ModeRow {
    std::int64_t mode_step = 0;
    std::int64_t global_step = 0;
  };

  void add_rows(const std::vector<NewPart>& parts);
  StepRow& row_of(std::int64_t global_step);
  void link(std::uint32_t part_id, StepRow* row);
  bool has_worker(const StepRow& row, std::uint32_t worker) const noexcept;
  void note_mode(const Part& part, const StepRow& row, bool is_first);
  void note_layout(const Part& part);
  const std::vector<ModeRow>& mode_rows(Mode mode) const noexcept { return mode_rows_[mode_index(mode)]; }

  IndexTables tables_;
  LocationArena arena_;
  std::vector<Part> parts_;
  StepFactsColumn facts_;
  std::vector<StepRow> steps_;
  std::array<std::vector<ModeRow>, 3> mode_rows_;  // TRAIN, EVAL, PREDICT: by mode step, then as added
  std::vector<std::uint8_t> layout_modes_;         // per layout, a bit per mode
  std::vector<bool> is_known_;                     // per tensor
  std::vector<Worker> workers_;
  std::map<std::string, std::uint32_t, std::less<>> worker_ids_;  // by the name in files
  std::vector<std::string> event_files_;                          // those that do not have the usual name
};

}  // namespace tornasole::trial
