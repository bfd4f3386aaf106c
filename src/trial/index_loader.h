#pragma once

// Index files from a store into the columns, on all cores when there are many. Reads no values.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "tornasole/result.h"
#include "tornasole/trial.h"
#include "trial/index_columns.h"

namespace tornasole::trial {

inline constexpr std::uint64_t kMaxIndexFileBytes = std::uint64_t{256} << 20U;

struct IndexFile {
  std::string path;
  std::int64_t step = 0;
  std::string worker_file_name;
  store::FileStatus status = {};
};

struct FailedFile {
  std::size_t place = 0;  // in the list of files
  Error error = {};
};

struct LoadOptions {
  unsigned threads = 0;  // 0: as many as the machine has
  // Below this many files the threads cost more than they bring.
  std::size_t min_parallel_files = 64;
};

struct LoadReport {
  std::vector<FailedFile> failed = {};  // what could not be read or parsed, in order
  std::vector<Damage> notes = {};       // of what made it slower, and cost nothing
};
// Adds all files, in their order, but those that failed.
LoadReport load_index_files(store::Store& store, const std::vector<IndexFile>& files, const LoadOptions& options,
                            IndexColumns* columns);

}  // namespace tornasole::trial
