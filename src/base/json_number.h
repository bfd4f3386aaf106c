#pragma once

// Numbers of JSON text, checked to the letter of its grammar.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace tornasole {

// `token` up to the first character that cannot belong to it. Parsers hand out a token with the space after it.
inline std::string_view number_token(std::string_view token) noexcept {
  return token.substr(0, token.find_first_of(" \t\r\n,]}"));
}

inline bool is_json_number(std::string_view token) noexcept {
  const auto skip_digits = [&token] {
    const std::size_t count = std::min(token.find_first_not_of("0123456789"), token.size());
    token.remove_prefix(count);
    return count;
  };
  if (token.starts_with('-')) token.remove_prefix(1);
  const bool has_leading_zero = token.starts_with('0');
  const std::size_t digits = skip_digits();
  if (digits == 0 || (has_leading_zero && digits > 1)) return false;
  if (token.starts_with('.')) {
    token.remove_prefix(1);
    if (skip_digits() == 0) return false;
  }
  if (token.starts_with('e') || token.starts_with('E')) {
    token.remove_prefix(1);
    if (token.starts_with('+') || token.starts_with('-')) token.remove_prefix(1);
    if (skip_digits() == 0) return false;
  }
  return token.empty();
}

// False for fractions, exponents, and what does not fit.
inline bool parse_json_integer(std::string_view token, std::int64_t* number) noexcept {
  if (!is_json_number(token)) return false;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), *number);
  return error == std::errc{} && end == token.data() + token.size();
}

// An integer written as a fraction or with an exponent: 2.0, 1e3. False for what no int64 is equal to.
inline bool parse_whole_number(std::string_view token, std::int64_t* number) noexcept {
  double real = 0;
  if (!is_json_number(token)) return false;
  if (std::from_chars(token.data(), token.data() + token.size(), real).ec != std::errc{}) return false;
  // 2^63 is a double, the largest int64 is none.
  if (!(real >= -0x1p63 && real < 0x1p63) || real != std::floor(real)) return false;
  *number = static_cast<std::int64_t>(real);
  return true;
}

// Python writes and reads these three, though JSON has none of them.
inline bool is_non_finite_literal(std::string_view token) noexcept {
  return token == "NaN" || token == "Infinity" || token == "-Infinity";
}

}  // namespace tornasole
