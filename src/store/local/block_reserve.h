#pragma once

// BlockReserve: room on the disk for a file that grows, taken ahead in few calls.
//
// ext4 takes room block by block as bytes come into the page cache, which takes its kernel longer than to copy them:
// where the blocks are there already, a large file is written in half of the processor's time. The size of the file
// stays what was written. Where the file system is another one, or says no, the file grows as files do.

#include <cstdint>

namespace tornasole::store {

class BlockReserve {
 public:
  explicit BlockReserve(bool is_wanted = true) noexcept : is_wanted_(is_wanted) {}

  // `bytes` are about to be written behind the first `size_bytes` of the file.
  void cover(int descriptor, std::uint64_t size_bytes, std::uint64_t bytes) noexcept;
  // The file is complete: what was taken and not used is given back.
  void trim(int descriptor, std::uint64_t size_bytes) noexcept;

 private:
  bool is_wanted_;
  std::uint64_t end_ = 0;  // of what was taken, or may have been
};

}  // namespace tornasole::store
