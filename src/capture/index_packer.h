#pragma once

// IndexPacker: repeats the index files of one worker in packs, where each file that a reader opens is a request over
// the network (docs/format.md 1.11).
//
//   1. An index file that was published, and whose version the store told, is added.
//   2. After 256 of them, or 4 MiB, the pack is due; what is left when the run ends makes the last one.
//   3. A pack is written after the files it repeats. One that cannot be written is left out: readers do without.
//
// Writer thread only.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "format/index_pack.h"
#include "store/store.h"
#include "tornasole/result.h"

namespace tornasole::capture {

struct PublishedIndex {
  std::int64_t step = 0;
  std::string path;
  Bytes text;
  std::string version;  // empty: the store did not say
};

class IndexPacker {
 public:
  // The store outlives the packer. With `is_tidying`, packs are remembered for remove_before.
  IndexPacker(store::Store* store, std::string worker, bool is_tidying);

  void add(const PublishedIndex& index);
  bool is_due() const noexcept;
  // Writes what was added, unless it is too little to be worth it; that is then kept for later.
  Status write();
  // Remembers, if tidying, what an earlier process left.
  Status find_made();
  // Removes packs that repeat nothing but files of steps before this one.
  Status remove_before(std::int64_t step);

 private:
  store::Store* const store_;
  const bool is_wanted_;
  const bool is_tidying_;
  Bytes pack_;
  std::size_t count_ = 0;
  format::IndexPackName name_;              // of the pack that is being made
  std::deque<format::IndexPackName> made_;  // oldest first; only if tidying
};

}  // namespace tornasole::capture
