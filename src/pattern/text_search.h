#pragma once

// Finding a short text in a short one, which is what patterns on names come down to.

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tornasole::pattern {

// Where `text`, which is not empty, occurs first at or after `from`; npos if nowhere. Searches by first and last byte:
// names are so short that a search that has to prepare itself is slower.
inline std::size_t find_text(std::string_view name, std::string_view text, std::size_t from) noexcept {
  if (name.size() < text.size() || from > name.size() - text.size()) return std::string_view::npos;
  const std::size_t last_start = name.size() - text.size();
  const char* bytes = name.data();
  const char first_byte = *text.data();
  const char last_byte = text.data()[text.size() - 1];
  std::size_t at = from;
#ifdef __SSE2__
  const __m128i first = _mm_set1_epi8(first_byte);
  const __m128i last = _mm_set1_epi8(last_byte);
  while (at <= last_start && last_start >= 15) {
    // Sixteen starts with the ends of their texts, all inside the name: the last block overlaps the one before.
    const std::size_t block = std::min(at, last_start - 15);
    const __m128i starts = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + block));
    const __m128i ends = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + block + text.size() - 1));
    const __m128i both = _mm_and_si128(_mm_cmpeq_epi8(starts, first), _mm_cmpeq_epi8(ends, last));
    auto hits = static_cast<unsigned>(_mm_movemask_epi8(both)) & (~0U << (at - block));
    for (; hits != 0; hits &= hits - 1) {
      const auto found = block + static_cast<std::size_t>(std::countr_zero(hits));
      if (std::memcmp(bytes + found, text.data(), text.size()) == 0) return found;
    }
    at = block + 16;
  }
#endif
  for (; at <= last_start; ++at) {
    if (bytes[at] == first_byte && bytes[at + text.size() - 1] == last_byte &&
        std::memcmp(bytes + at, text.data(), text.size()) == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

}  // namespace tornasole::pattern
