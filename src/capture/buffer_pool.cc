#include "capture/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace tornasole::capture {
namespace {

constexpr std::size_t kGrain = std::size_t{64} << 10;  // capacities are multiples of this
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* allocate(std::size_t capacity) noexcept {
  const std::size_t alignment = capacity >= kHugePage ? kHugePage : std::size_t{4096};
  void* memory = std::aligned_alloc(alignment, (capacity + alignment - 1) / alignment * alignment);
  // Large pages make the first touch several times cheaper; where they are not to be had nothing is lost.
  if (memory != nullptr && capacity >= kHugePage) madvise(memory, capacity, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
  }
  return *this;
}

void Buffer::reset() noexcept {
  if (data_ != nullptr) pool_->give_back(data_, capacity_);
  data_ = nullptr;
}

BufferPool::~BufferPool() {
  for (const Free& buffer : free_) std::free(buffer.data);
}

Buffer BufferPool::try_take(std::size_t bytes) {
  // Even an empty value takes a grain, so that a flood of them meets the limit too.
  const std::size_t capacity = (std::max(bytes, std::size_t{1}) + kGrain - 1) / kGrain * kGrain;
  const std::lock_guard lock(mutex_);
  // The smallest that fits, unless most of it would lie idle.
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->capacity < capacity || it->capacity / 2 > capacity) continue;
    if (best == free_.end() || it->capacity < best->capacity) best = it;
  }
  const std::size_t taken = best != free_.end() ? best->capacity : capacity;
  if (used_bytes_ + taken > limit_bytes_) return {};
  std::byte* data = nullptr;
  if (best != free_.end()) {
    data = best->data;
    free_bytes_ -= taken;
    free_.erase(best);
  } else {
    while (!free_.empty() && used_bytes_ + free_bytes_ + taken > limit_bytes_) {
      std::free(free_.front().data);
      free_bytes_ -= free_.front().capacity;
      free_.erase(free_.begin());
    }
    data = allocate(taken);
    if (data == nullptr) return {};
  }
  used_bytes_ += taken;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return Buffer(this, data, taken);
}

void BufferPool::give_back(std::byte* data, std::size_t capacity) noexcept {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= capacity;
  try {
    free_.push_back({data, capacity});
    free_bytes_ += capacity;
  } catch (...) {
    std::free(data);
  }
}

std::size_t BufferPool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t BufferPool::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

}  // namespace tornasole::capture
