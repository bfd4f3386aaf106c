#pragma once

// DirectWriter: the bytes of one large file on their way past the page cache.
//
//   1. gather: bytes are copied into a block of memory that lies as the file does; a full one is written out.
//   2. write_out: whole blocks of the file system directly, what is before and after them through the page cache.
//      A page is never written both ways: the kernel would have to write it back first.
//   3. Where the disk says no, everything goes through the page cache.
//
// The file's own position is used, so that others may append to it after write_out.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "store/local/direct_memory.h"

namespace tornasole::store {

class DirectWriter {
 public:
  explicit DirectWriter(std::shared_ptr<DirectMemory> memory) noexcept : memory_(std::move(memory)) {}
  ~DirectWriter() { stop(); }
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;

  // Takes memory, for a file that ends at `size_bytes`, all of it written. False: it is to be written as others are.
  bool begin(int descriptor, std::uint64_t size_bytes) noexcept;
  bool has_begun() const noexcept { return block_ != nullptr; }
  // Gives the memory back; whatever is in it is forgotten.
  void stop() noexcept;

  // 0 or an errno.
  int gather(std::span<const ByteView> pieces) noexcept;
  int write_out() noexcept;

 private:
  // Writes what lies in the block up to `end`, directly or through the page cache.
  int write_until(std::size_t end, bool is_direct) noexcept;

  const std::shared_ptr<DirectMemory> memory_;
  DirectMemory::Block block_;
  int descriptor_ = -1;
  // Of the block, whose first byte is at a multiple of the alignment in the file: what is still here.
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace tornasole::store
