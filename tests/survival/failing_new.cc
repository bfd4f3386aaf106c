#include "survival/failing_new.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> allocations_left = 0;  // until the one that fails
std::atomic<bool> is_armed = false;
std::atomic<bool> is_failure_lasting = false;
thread_local bool is_thread_exempt = false;

bool fails_now() {
  if (is_thread_exempt || !is_armed.load(std::memory_order_relaxed)) return false;
  const long left = --allocations_left;
  return left == 0 || (left < 0 && is_failure_lasting.load(std::memory_order_relaxed));
}

void* allocate(std::size_t size, std::size_t alignment) {
  void* memory = fails_now() ? nullptr : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size == 0 ? 1 : size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size == 0 ? 1 : size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tornasole::survival {

void arm_failing_new(long n, bool is_lasting) {
  allocations_left = n;
  is_failure_lasting = is_lasting;
  is_armed = n > 0;
}
ExemptFromFailingNew::ExemptFromFailingNew() : was_exempt_(is_thread_exempt) { is_thread_exempt = true; }
ExemptFromFailingNew::~ExemptFromFailingNew() { is_thread_exempt = was_exempt_; }

}  // namespace tornasole::survival
