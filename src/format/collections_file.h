#pragma once

// Collections files: what the collections of one worker are (docs/format.md 5).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tensor/reduction_spec.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole::format {

struct StoredSchedule {
  std::int64_t save_interval = 500;
  std::int64_t start_step = 0;
  std::optional<std::int64_t> end_step = {};
  std::vector<std::int64_t> save_steps = {};
  std::vector<std::string> when_nan = {};
  bool operator==(const StoredSchedule&) const = default;
};
struct StoredCollection {
  std::string name = {};
  std::vector<std::string> include_regex = {};
  std::vector<std::string> exclude_regex = {};
  std::vector<std::string> tensor_names = {};  // sorted
  std::optional<ReductionSpec> reductions = {};
  std::optional<std::array<std::optional<StoredSchedule>, 4>> schedules = {};  // by mode_index
  bool save_histogram = true;
  bool operator==(const StoredCollection&) const = default;
};
struct CollectionsFile {
  std::vector<StoredCollection> collections = {};
  std::int64_t num_workers = 1;
  bool is_verified = false;
};

Bytes encode_collections(const CollectionsFile& file, bool with_checksum = true);
Result<CollectionsFile> decode_collections(ByteView text);

}  // namespace tornasole::format
