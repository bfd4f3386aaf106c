// Patterns: the first line is the pattern, the rest the name. Whatever is accepted answers within its limits, and
// answers the same when it is compiled again.

#include <algorithm>
#include <string_view>

#include "fuzz_check.h"
#include "pattern/pattern.h"

using namespace tornasole;
using namespace tornasole::pattern;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string_view text = input.substr(0, end);
  const std::string_view name = input.substr(std::min(end + 1, input.size()));
  const auto pattern = Pattern::compile(text);
  const auto again = Pattern::compile(text);
  FUZZ_CHECK(pattern.ok() == again.ok());
  if (!pattern.ok()) {
    FUZZ_CHECK(pattern.error().code == ErrorCode::kInvalid);
    FUZZ_CHECK(pattern.error().message == again.error().message);
    return 0;
  }
  FUZZ_CHECK(pattern->text() == text);
  const Match match = pattern->search(name);
  FUZZ_CHECK(again->search(name) == match);
  FUZZ_CHECK(pattern->search(name) == match);
  return 0;
}
