#include "store/local/block_reserve.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

#include "store/local/file_handle.h"

namespace tornasole::store {
namespace {

// Smaller files are written faster than room is taken for them.
constexpr std::uint64_t kLeastBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kAheadBytes = std::uint64_t{2} << 20;

bool is_ext4(int descriptor) noexcept {
  struct statfs found{};
  return fstatfs(descriptor, &found) == 0 && found.f_type == EXT4_SUPER_MAGIC;
}

}  // namespace

void BlockReserve::cover(int descriptor, std::uint64_t size_bytes, std::uint64_t bytes) noexcept {
  const std::uint64_t needed = size_bytes + bytes;
  if (!is_wanted_ || needed <= end_ || needed < kLeastBytes) return;
  const std::uint64_t from = std::max(end_, size_bytes);
  const std::uint64_t length = std::max(kAheadBytes, needed - from);
  is_wanted_ = end_ != 0 || is_ext4(descriptor);
  if (!is_wanted_) return;
  end_ = from + length;
  // A full disk is the write's to tell, if it comes to that.
  is_wanted_ =
      uninterrupted([&] {
        return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(length));
      }) == 0;
}

void BlockReserve::trim(int descriptor, std::uint64_t size_bytes) noexcept {
  if (end_ <= size_bytes) return;
  // Where that fails the file takes more room than it needs, and is complete all the same.
  static_cast<void>(uninterrupted([&] { return ftruncate(descriptor, static_cast<off_t>(size_bytes)); }));
  end_ = 0;
}

}  // namespace tornasole::store
