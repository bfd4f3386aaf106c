#pragma once

// FileHandle: an open file descriptor that closes itself, and reads and writes that finish what they began.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace tornasole::store {

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) noexcept : descriptor_(descriptor) {}
  ~FileHandle() { close(); }
  FileHandle(FileHandle&& other) noexcept : descriptor_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = other.release();
    }
    return *this;
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  bool is_open() const noexcept { return descriptor_ >= 0; }
  int get() const noexcept { return descriptor_; }
  // The caller closes it.
  int release() noexcept {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    return descriptor;
  }
  // 0 or an errno. Some file systems report a failed write only here.
  int close() noexcept;

 private:
  int descriptor_ = -1;
};

// A call that a signal interrupts is made again, but not for ever: a kernel or a tracer that answers EINTR each time
// must not hang a training.
template <typename Call>
auto uninterrupted(Call call) noexcept -> decltype(call()) {
  constexpr int kMaxInterrupts = 100;
  for (int attempt = 0;; ++attempt) {
    const auto result = call();
    if (result >= 0 || errno != EINTR || attempt == kMaxInterrupts) return result;
  }
}

// Writes all pieces in order at the file's position. 0 or an errno; *written counts what left the process either way.
int write_pieces(int descriptor, std::span<const ByteView> pieces, std::uint64_t* written) noexcept;

// Fills `buffer` from `offset`. 0 or an errno; *count is less than the buffer only if the file ended.
int read_at(int descriptor, std::uint64_t offset, std::span<char> buffer, std::size_t* count) noexcept;

}  // namespace tornasole::store
