#pragma once

// Result<T>: a value, or an Error that tells the caller what to do next (the code) and a person what
// was tried, on what, and where (the message). Nothing in the public API throws.

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tornasole/export.h"
#include "tornasole/mode.h"

namespace tornasole {

enum class ErrorCode {
  kInvalid,      // correct the call or the configuration
  kNotFound,     // stop asking: it was never saved
  kEnded,        // stop asking: the run is over
  kNotYet,       // ask again later; a file that stops mid-record is normal while training runs
  kCorrupt,      // skip it and count it; the message has file and offset
  kIo,           // maybe retry
  kUnsupported,  // give up
};

// Which exception class a binding raises for the error.
enum class ErrorKind {
  kBase,
  kType,
  kValue,
  kRuntime,
  kNotImplemented,
  kBadCollection,
  kFileNotFound,
  // Of trials:
  kMissingCollectionFiles,
  kIndexReader,
  kTensorUnavailable,
  kTensorUnavailableForStep,
  kShapeUnavailableForStep,
  kStepUnavailable,
  kStepNotYetAvailable,
  kNoMoreData,
  kInvalidWorker,
  // Of rules:
  kInsufficientInformation,
};

// What an error of a trial is about, as far as it applies.
struct ErrorDetails {
  std::string tensor = {};
  std::string worker = {};
  std::string reason = {};  // "damaged", "missing file", "only reductions", ...
  std::int64_t step = -1;
  Mode mode = Mode::kGlobal;
  std::int64_t last_step = -1;
  bool has_reductions = false;
};

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;
  ErrorKind kind = ErrorKind::kBase;
  std::shared_ptr<const ErrorDetails> details = {};  // shared: errors are copied, and few have any
};

// The name of a code as it appears in messages and logs: "invalid", "not found", ...
TORNASOLE_EXPORT const char* error_code_name(ErrorCode code) noexcept;

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  const Error& error() const& {
    assert(!ok());
    return *error_;
  }
  Error&& error() && {
    assert(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace tornasole
