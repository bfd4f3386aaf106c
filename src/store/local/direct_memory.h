#pragma once

// DirectMemory: what the large files of one store share to be written past the page cache: a block of memory in which
// their bytes are gathered, and whether the disk is worth it.
//
// Copying megabytes into the page cache takes the kernel more of the processor than everything before it, and pushes
// out what the training's data loaders keep there. A disk that takes them directly spares both, but the writer waits
// for it: a slow one is better left to the kernel.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tornasole::store {

// Thread-safe; a file that is being written may outlive its store, and shares it.
class DirectMemory {
 public:
  // One large page: what a device reads from is pinned page by page.
  static constexpr std::size_t kBytes = std::size_t{2} << 20;
  // Of the file and of memory; of every disk and file system in use a multiple of what it asks for.
  static constexpr std::size_t kAlignment = 4096;

  explicit DirectMemory(bool is_wanted) noexcept : is_possible_(is_wanted) {}
  DirectMemory(const DirectMemory&) = delete;
  DirectMemory& operator=(const DirectMemory&) = delete;

  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  using Block = std::unique_ptr<std::byte, Free>;
  // For a file of a file system that takes direct writes. Null if none is to be had now: the file is then written
  // through the page cache.
  Block take(int descriptor) noexcept;
  void give_back(Block block) noexcept;

  // So many bytes took the disk so long.
  void note(std::size_t bytes, double seconds) noexcept;
  // The file system takes no direct writes after all.
  void refuse() noexcept;

 private:
  std::mutex mutex_;
  bool is_possible_;         // guarded by mutex_
  bool is_known_ = false;    // guarded by mutex_; the file system was looked at
  Block spare_;              // guarded by mutex_
  std::uint64_t bytes_ = 0;  // guarded by mutex_; since the speed was last judged
  double seconds_ = 0;       // guarded by mutex_
  int files_to_pass_ = 0;    // guarded by mutex_; through the page cache, since the disk was slow
};

}  // namespace tornasole::store
