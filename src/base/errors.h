#pragma once

// Makes Error values with formatted messages, and the one control-flow macro.

#include <fmt/format.h>

#include <utility>

#include "tornasole/result.h"

namespace tornasole {

template <typename... Args>
Error make_error(ErrorCode code, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...), kind};
}
template <typename... Args>
Error invalid_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kValue};
}
template <typename... Args>
Error type_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kType};
}
template <typename... Args>
Error runtime_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalid, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kRuntime};
}
template <typename... Args>
Error not_found_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kNotFound, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kFileNotFound};
}
template <typename... Args>
Error corrupt_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kCorrupt, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kBase};
}
template <typename... Args>
Error not_yet_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kNotYet, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kBase};
}
template <typename... Args>
Error io_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kIo, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kBase};
}
template <typename... Args>
Error unsupported_error(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...), ErrorKind::kNotImplemented};
}

// "<what>: <strerror>"; ENOENT is kNotFound, everything else kIo.
Error errno_error(int error_number, std::string_view what);
// What a catch (...) caught, at the boundary to code that may throw.
Error error_from_current_exception() noexcept;

}  // namespace tornasole

#define TORNASOLE_CONCAT_INNER(a, b) a##b
#define TORNASOLE_CONCAT(a, b) TORNASOLE_CONCAT_INNER(a, b)

// TORNASOLE_TRY(Header header, read_header()); or TORNASOLE_CHECK(write(x)); returns the error from the enclosing
// function, which returns some Result.
#define TORNASOLE_TRY(declaration, expression) \
  TORNASOLE_TRY_IMPL(TORNASOLE_CONCAT(tornasole_try_, __LINE__), declaration, expression)
#define TORNASOLE_TRY_IMPL(result, declaration, expression) \
  auto result = (expression);                               \
  if (!result.ok()) return std::move(result).error();       \
  declaration = std::move(result).value()
#define TORNASOLE_CHECK(expression)                                       \
  do {                                                                    \
    auto tornasole_check = (expression);                                  \
    if (!tornasole_check.ok()) return std::move(tornasole_check).error(); \
  } while (false)
