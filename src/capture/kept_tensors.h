#pragma once

// KeptTensors: copies of tensors as they were at an earlier step, for the statistics that compare. Bounded in bytes.
// The memory of a copy is used again for the next one of the same tensor. Guarded by the hook's mutex; a tensor that
// was taken out belongs to who took it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "tornasole/tensor.h"

namespace tornasole::capture {

// Memory that is counted as long as it lives.
class CountedMemory {
 public:
  CountedMemory() = default;
  CountedMemory(CountedMemory&& other) noexcept;
  CountedMemory& operator=(CountedMemory&& other) noexcept;
  ~CountedMemory() { reset(); }

  std::byte* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  void reset() noexcept;
  // Empty if *used would exceed the limit, or there is none to be had. Aligned as copy_elements wants it.
  static CountedMemory take(std::size_t bytes, std::size_t limit_bytes, std::atomic<std::size_t>* used) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::atomic<std::size_t>* used_ = nullptr;
};

struct KeptTensor {
  CountedMemory memory = {};  // empty: nothing is kept
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::uint64_t step_serial = 0;
  std::int64_t mode_step = 0;
  std::optional<std::int64_t> optimizer_step = {};

  explicit operator bool() const noexcept { return static_cast<bool>(memory); }
  TensorView view() const { return {dtype, memory.data(), shape}; }
};

class KeptTensors {
 public:
  explicit KeptTensors(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // What is kept of the tensor; it is forgotten until it is put back.
  KeptTensor take(const std::string* name);
  void put(const std::string* name, KeptTensor tensor);
  // Thread-safe. Makes `kept` hold a copy of the tensor. False, and nothing is kept, if it does not fit the limit.
  bool copy(const TensorView& tensor, KeptTensor* kept) noexcept;
  std::size_t limit_bytes() const noexcept { return limit_bytes_; }
  std::size_t used_bytes() const noexcept { return used_bytes_; }

 private:
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> used_bytes_ = 0;  // before the tensors: it must outlive their memory
  std::unordered_map<const std::string*, KeptTensor> tensors_;
};

}  // namespace tornasole::capture
