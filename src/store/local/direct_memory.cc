#include "store/local/direct_memory.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <cstdlib>
#include <utility>

namespace tornasole::store {
namespace {

// A disk that is slower than this keeps the writer waiting for longer than copies take, and readers of a live run share
// it. It is judged by so many bytes, and tried again after so many files.
constexpr double kLeastBytesPerSecond = 300e6;
constexpr std::uint64_t kJudgedBytes = std::uint64_t{16} << 20;
constexpr int kFilesToPass = 256;

constexpr decltype(statfs::f_type) kXfsMagic = 0x58465342;  // <linux/magic.h> lacks it

// The others copy anyway, check what they copy, or send it over a network.
bool takes_direct_writes(int descriptor) noexcept {
  struct statfs found{};
  return fstatfs(descriptor, &found) == 0 && (found.f_type == EXT4_SUPER_MAGIC || found.f_type == kXfsMagic);
}

}  // namespace

void DirectMemory::Free::operator()(std::byte* data) const noexcept { std::free(data); }

DirectMemory::Block DirectMemory::take(int descriptor) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_possible_ && !is_known_) is_possible_ = takes_direct_writes(descriptor);
  is_known_ = true;
  if (!is_possible_) return {};
  if (files_to_pass_ > 0) {
    --files_to_pass_;
    return {};
  }
  if (spare_) return std::move(spare_);
  Block made(static_cast<std::byte*>(std::aligned_alloc(kBytes, kBytes)));
  if (made) madvise(made.get(), kBytes, MADV_HUGEPAGE);
  return made;
}

void DirectMemory::give_back(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  if (!spare_) spare_ = std::move(block);
}

void DirectMemory::note(std::size_t bytes, double seconds) noexcept {
  const std::lock_guard lock(mutex_);
  bytes_ += bytes;
  seconds_ += seconds;
  if (bytes_ < kJudgedBytes) return;
  if (static_cast<double>(bytes_) < kLeastBytesPerSecond * seconds_) files_to_pass_ = kFilesToPass;
  bytes_ = 0;
  seconds_ = 0;
}

void DirectMemory::refuse() noexcept {
  const std::lock_guard lock(mutex_);
  is_possible_ = false;
}

}  // namespace tornasole::store
