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
  for (const auto& [capacity, buffers] : free_) {
    for (const Free& buffer : buffers) std::free(buffer.data);
  }
}

Buffer BufferPool::try_take(std::size_t bytes) {
  // Even an empty value takes a grain, so that a flood of them meets the limit too.
  const std::size_t capacity = (std::max(bytes, std::size_t{1}) + kGrain - 1) / kGrain * kGrain;
  const std::lock_guard lock(mutex_);
  // The smallest that fits, unless most of it would lie idle; the one that came back last, which caches may still hold.
  auto best = free_.lower_bound(capacity);
  while (best != free_.end() && best->second.empty()) ++best;
  if (best != free_.end() && best->first / 2 > capacity) best = free_.end();
  const std::size_t taken = best != free_.end() ? best->first : capacity;
  if (used_bytes_ + taken > limit_bytes_) return {};
  std::byte* data = nullptr;
  if (best != free_.end()) {
    data = best->second.back().data;
    best->second.pop_back();
    free_bytes_ -= taken;
  } else {
    while (free_bytes_ > 0 && used_bytes_ + free_bytes_ + taken > limit_bytes_) free_oldest_locked();
    data = allocate(taken);
    if (data == nullptr) return {};
  }
  used_bytes_ += taken;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return Buffer(this, data, taken);
}

void BufferPool::free_oldest_locked() noexcept {
  auto oldest = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second.empty()) continue;
    if (oldest == free_.end() || it->second.front().since < oldest->second.front().since) oldest = it;
  }
  std::free(oldest->second.front().data);
  free_bytes_ -= oldest->first;
  oldest->second.erase(oldest->second.begin());
  if (oldest->second.empty()) free_.erase(oldest);
}

void BufferPool::give_back(std::byte* data, std::size_t capacity) noexcept {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= capacity;
  try {
    free_[capacity].push_back({data, ++returns_});
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
