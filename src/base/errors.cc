#include "base/errors.h"

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

namespace tornasole {

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalid: return "invalid";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kEnded: return "ended";
    case ErrorCode::kNotYet: return "not yet";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kUnsupported: return "unsupported";
  }
  return "unknown";
}

Error errno_error(int error_number, std::string_view what) {
  std::string text = std::generic_category().message(error_number);
  if (error_number == ENOENT) return not_found_error("{}: {}", what, text);
  return io_error("{}: {}", what, text);
}

Error error_from_current_exception() noexcept {
  // The message may itself need memory that is not there: an Error without text is still an Error.
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::kIo, "out of memory", ErrorKind::kRuntime};
    } catch (const std::exception& exception) {
      return io_error("{}", exception.what());
    } catch (...) {
      return Error{ErrorCode::kIo, "unknown exception", ErrorKind::kRuntime};
    }
  } catch (...) {
    return Error{ErrorCode::kIo, std::string(), ErrorKind::kRuntime};
  }
}

}  // namespace tornasole
