#include "capture/copy_elements.h"

#include <cassert>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tornasole::capture {
namespace {

#if defined(__SSE2__)
// From here on the copy would push what the training computes with out of the caches: it is the writer's to read.
constexpr std::size_t kLargeBytes = std::size_t{128} << 10;
constexpr std::size_t kLineBytes = 64;

void copy_past_caches(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  assert(reinterpret_cast<std::uintptr_t>(to) % sizeof(__m128i) == 0);
  std::size_t at = 0;
  for (; at + kLineBytes <= bytes; at += kLineBytes) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
  }
  std::memcpy(to + at, from + at, bytes - at);
  // Such stores are not ordered by a mutex: without this the writer's thread could see what was there before.
  _mm_sfence();
}
#endif

}  // namespace

void copy_elements(const TensorView& tensor, std::byte* out) noexcept {
#if defined(__SSE2__)
  const auto bytes = static_cast<std::size_t>(tensor.size_bytes());
  if (bytes >= kLargeBytes && tensor.is_contiguous()) {
    copy_past_caches(tensor.data(), out, bytes);
    return;
  }
#endif
  tensor.copy_to(out);
}

}  // namespace tornasole::capture
