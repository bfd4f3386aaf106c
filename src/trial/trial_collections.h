#pragma once

// TrialCollections: what the collections files of all workers say together, and what the user adds to it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "tornasole/trial.h"

namespace tornasole::trial {

class TrialCollections {
 public:
  struct LoadedFiles {
    std::vector<Damage> damage = {};         // files that cannot be used
    std::vector<Damage> disagreements = {};  // files that can, but say something else than the others
    std::vector<std::string> young = {};     // damaged, but perhaps still being written
  };
  // Reads the files that are new or changed since the last time. `now_s` is the wall clock.
  Result<LoadedFiles> load(store::Store& store, double now_s);

  std::size_t file_count() const noexcept { return files_.size(); }
  std::size_t readable_count() const noexcept;
  // As claimed; the largest, at least 1.
  std::int64_t num_workers() const noexcept { return num_workers_; }
  // Names in files, from the names of the collections files, readable or not.
  std::vector<std::string> worker_file_names() const;

  const std::map<std::string, TrialCollection, std::less<>>& all() const noexcept { return collections_; }
  // Created empty if there is none.
  TrialCollection& get(std::string_view name);

 private:
  struct File {
    store::FileStatus status = {};
    std::string worker_file_name = {};
    std::int64_t num_workers = 0;  // 0: not readable
    bool is_reported = false;
  };
  void merge(const std::string& path, const Bytes& text, File* file, LoadedFiles* loaded, double now_s);

  std::map<std::string, File, std::less<>> files_;  // by path
  std::map<std::string, TrialCollection, std::less<>> collections_;
  std::int64_t num_workers_ = 1;
  bool has_claim_ = false;
};

}  // namespace tornasole::trial
