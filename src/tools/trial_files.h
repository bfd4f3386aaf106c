#pragma once

// What lies in the directory of a trial, sorted by what it is. Names alone are looked at, never content.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

// A file of one step of one worker.
struct StepFileEntry {
  std::string path;
  store::FileStatus status = {};
  std::int64_t step = 0;
  std::string worker;  // as in file names
};

struct TrialFiles {
  std::vector<store::Entry> collections = {};
  std::vector<StepFileEntry> index = {};
  std::vector<store::Entry> misnamed_index = {};  // .json or .csv below index/ whose name says no step
  std::vector<StepFileEntry> events = {};
  std::vector<store::Entry> tensorboard = {};
  std::vector<store::Entry> state = {};           // tornasole/: run, health, model
  std::vector<store::Entry> packs = {};           // tornasole/packs/: index packs
  std::vector<store::Entry> temporary = {};       // *.tmp in the trial's directories
  std::vector<store::Entry> root_temporary = {};  // *.tmp of the root's own files, set-up locks included
  std::vector<store::Entry> foreign = {};         // in the trial's directories, but no part of a trial
  bool has_end_marker = false;
  bool has_claim = false;
  bool has_stop_request = false;
  std::vector<std::int64_t> attempts = {};          // numbers, ascending
  std::vector<std::int64_t> unfinished_moves = {};  // attempts/<n>.tmp
  std::vector<Damage> unlisted = {};                // directories that are something else, or too large

  // Not one file that a run would have left.
  bool is_empty() const noexcept;
};

// Directories that do not exist are empty; kIo if one cannot be read.
Result<TrialFiles> list_trial_files(store::Store& store);

std::string attempt_directory(std::int64_t number);
// "index/a/b.json.tmp" -> "index/a/b.json"; empty if the path does not end in .tmp.
std::string_view without_temporary_suffix(std::string_view path) noexcept;
std::string_view last_component(std::string_view path) noexcept;
// The worker of "…/<worker>_collections.json", as in file names; empty if it is not such a name.
std::string_view collections_worker(std::string_view path) noexcept;

}  // namespace tornasole::tools
