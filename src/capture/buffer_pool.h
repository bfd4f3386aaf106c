#pragma once

// BufferPool: memory for copies of tensors, reused, because the first touch of fresh memory costs more than the copy.
// The bytes handed out and the bytes kept for reuse together never exceed the limit.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tornasole::capture {

class BufferPool;

// Memory that goes back to its pool when it is dropped. Empty when default-constructed.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  std::byte* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  void reset() noexcept;

 private:
  friend class BufferPool;
  Buffer(BufferPool* pool, std::byte* data, std::size_t capacity) : pool_(pool), data_(data), capacity_(capacity) {}
  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// Thread-safe. Must outlive its buffers.
class BufferPool {
 public:
  explicit BufferPool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // At least `bytes`, or an empty Buffer if that would exceed the limit now.
  Buffer try_take(std::size_t bytes);
  std::size_t used_bytes() const;
  std::size_t peak_bytes() const;
  std::size_t limit_bytes() const noexcept { return limit_bytes_; }

 private:
  friend class Buffer;
  struct Free {
    std::byte* data;
    std::uint64_t since;  // number of the return
  };
  void give_back(std::byte* data, std::size_t capacity) noexcept;
  void free_oldest_locked() noexcept;

  const std::size_t limit_bytes_;  // constant
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<Free>> free_;  // guarded by mutex_; by capacity, oldest first
  std::uint64_t returns_ = 0;                      // guarded by mutex_
  std::size_t free_bytes_ = 0;                     // guarded by mutex_
  std::size_t used_bytes_ = 0;                     // guarded by mutex_
  std::size_t peak_bytes_ = 0;                     // guarded by mutex_
};

}  // namespace tornasole::capture
