#pragma once

// PartRepair: steps 3 to 6 of repair.h on one trial: the directory itself or one of its attempts. The caller knows that
// nobody writes there.
//
// Used by: repair.

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "capture/run_occupancy.h"
#include "format/collections_file.h"
#include "tools/repair.h"
#include "tools/trial_files.h"

namespace tornasole::tools {

class PartRepair {
 public:
  struct Options {
    bool dry_run = false;
    std::string prefix = {};  // before paths in the report: "attempts/1/", or nothing
  };
  PartRepair(store::Store* store, TrialFiles files, Options options, RepairReport* report);

  Status run();

 private:
  using StepKey = std::pair<std::int64_t, std::string>;  // step, worker as in file names

  Status read_published_indices();
  Status finish_index_files();
  Status publish_step_of(const std::string& event_path, const StepFileEntry& source, bool is_published);
  Status salvage_event_files();
  Status finish_other_files();
  Status write_missing_collections();
  Status write_collections(const std::string& worker, const format::CollectionsFile& content);
  Status close_run();
  Status mark_failed(const capture::HealthFile& file);

  // What an index that was complete, but for its name, says: nothing if it must not be published.
  std::optional<StepKey> whole_step(const store::Entry& temporary);
  bool is_whole_tensorboard_file(const std::string& path);

  // Adds the action to the report and, unless this is a dry run, does it.
  template <typename Work>
  Status act(RepairActionKind kind, const std::string& path, std::string detail, const Work& work);
  Status remove(const std::string& path, std::string detail);
  Status publish_by_rename(RepairActionKind kind, const std::string& temporary, const std::string& path,
                           std::string detail);
  void problem(const std::string& path, const Error& error);

  store::Store& store_;
  TrialFiles files_;
  const Options options_;
  RepairReport& report_;
  std::set<StepKey> indexed_;                              // steps that have an index file, readable or not; grows
  std::set<StepKey> salvaged_;                             // by this repair: partial
  std::set<std::string, std::less<>> event_files_in_use_;  // named by an index
};

}  // namespace tornasole::tools
