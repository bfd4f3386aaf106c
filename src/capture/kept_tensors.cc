#include "capture/kept_tensors.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "capture/copy_elements.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

CountedMemory::CountedMemory(CountedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, nullptr)) {}

CountedMemory& CountedMemory::operator=(CountedMemory&& other) noexcept {
  if (this == &other) return *this;
  reset();
  data_ = std::exchange(other.data_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  used_ = std::exchange(other.used_, nullptr);
  return *this;
}

void CountedMemory::reset() noexcept {
  if (data_ == nullptr) return;
  std::free(data_);
  used_->fetch_sub(capacity_);
  data_ = nullptr;
  capacity_ = 0;
}

CountedMemory CountedMemory::take(std::size_t bytes, std::size_t limit_bytes, std::atomic<std::size_t>* used) noexcept {
  CountedMemory memory;
  if (bytes > limit_bytes) return memory;
  const std::size_t capacity = (std::max(bytes, std::size_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
  if (used->fetch_add(capacity) + capacity <= limit_bytes) {
    memory.data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity));
  }
  if (memory.data_ == nullptr) {
    used->fetch_sub(capacity);
    return memory;
  }
  memory.capacity_ = capacity;
  memory.used_ = used;
  return memory;
}

KeptTensor KeptTensors::take(const std::string* name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return {};
  return std::exchange(found->second, KeptTensor{});
}

void KeptTensors::put(const std::string* name, KeptTensor tensor) { tensors_[name] = std::move(tensor); }

bool KeptTensors::copy(const TensorView& tensor, KeptTensor* kept) noexcept {
  const auto bytes = static_cast<std::size_t>(tensor.size_bytes());
  if (kept->memory.capacity() < bytes || !kept->memory) {
    kept->memory.reset();
    kept->memory = CountedMemory::take(bytes, limit_bytes_, &used_bytes_);
    if (!kept->memory) return false;
  }
  copy_elements(tensor, kept->memory.data());
  kept->dtype = tensor.dtype();
  kept->shape = tensor.shape();
  return true;
}

}  // namespace tornasole::capture
