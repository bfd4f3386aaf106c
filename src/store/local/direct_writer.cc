#include "store/local/direct_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "store/local/file_handle.h"

namespace tornasole::store {
namespace {

// Less than this is copied sooner than the disk has answered.
constexpr std::size_t kLeastBytes = std::size_t{128} << 10;

constexpr std::size_t round_down(std::size_t bytes) { return bytes - bytes % DirectMemory::kAlignment; }

// Makes the writes of a descriptor direct while it lives.
class DirectFlag {
 public:
  explicit DirectFlag(int descriptor) noexcept : descriptor_(descriptor), flags_(fcntl(descriptor, F_GETFL)) {
    is_set_ = flags_ >= 0 && fcntl(descriptor, F_SETFL, flags_ | O_DIRECT) == 0;
  }
  ~DirectFlag() {
    if (is_set_) fcntl(descriptor_, F_SETFL, flags_);
  }
  DirectFlag(const DirectFlag&) = delete;
  DirectFlag& operator=(const DirectFlag&) = delete;
  bool is_set() const noexcept { return is_set_; }

 private:
  int descriptor_;
  int flags_;
  bool is_set_ = false;
};

}  // namespace

bool DirectWriter::begin(int descriptor, std::uint64_t size_bytes) noexcept {
  block_ = memory_->take(descriptor);
  descriptor_ = descriptor;
  begin_ = end_ = size_bytes % DirectMemory::kAlignment;
  return has_begun();
}

void DirectWriter::stop() noexcept {
  if (block_) memory_->give_back(std::move(block_));
}

int DirectWriter::gather(std::span<const ByteView> pieces) noexcept {
  for (ByteView piece : pieces) {
    while (!piece.empty()) {
      const std::size_t count = std::min(piece.size(), DirectMemory::kBytes - end_);
      std::memcpy(block_.get() + end_, piece.data(), count);
      piece.remove_prefix(count);
      end_ += count;
      if (end_ < DirectMemory::kBytes) continue;
      if (const int error = write_out(); error != 0) return error;
    }
  }
  return 0;
}

int DirectWriter::write_out() noexcept {
  const std::size_t first_whole = std::min(round_down(begin_ + DirectMemory::kAlignment - 1), end_);
  const std::size_t end_of_whole = std::max(round_down(end_), first_whole);
  int error = write_until(first_whole, /*is_direct=*/false);
  if (error == 0) error = write_until(end_of_whole, end_of_whole - first_whole >= kLeastBytes);
  if (error == 0) error = write_until(end_, /*is_direct=*/false);
  begin_ = end_ = end_ % DirectMemory::kAlignment;
  return error;
}

int DirectWriter::write_until(std::size_t end, bool is_direct) noexcept {
  if (is_direct && begin_ < end) {
    const DirectFlag flag(descriptor_);
    const auto began = std::chrono::steady_clock::now();
    const ssize_t count =
        flag.is_set() ? uninterrupted([&] { return write(descriptor_, block_.get() + begin_, end - begin_); }) : -1;
    if (count > 0) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
      memory_->note(static_cast<std::size_t>(count), taken.count());
      begin_ += static_cast<std::size_t>(count);
    } else if (count < 0 && (!flag.is_set() || errno == EINVAL || errno == EOPNOTSUPP)) {
      memory_->refuse();
    }
    // What is left, or why nothing can be written, is said by the way below.
  }
  const ByteView rest(reinterpret_cast<const char*>(block_.get()) + begin_, end - begin_);
  std::uint64_t written = 0;
  const int error = rest.empty() ? 0 : write_pieces(descriptor_, std::span(&rest, 1), &written);
  begin_ += static_cast<std::size_t>(written);
  return error;
}

}  // namespace tornasole::store
