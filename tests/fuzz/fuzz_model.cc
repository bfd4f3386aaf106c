// Model files: whatever is accepted is within its bounds, and survives being written and read again.

#include "format/model_file.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto stored = decode_model(fuzz_text(data, size));
  if (!stored.ok()) {
    FUZZ_CHECK(stored.error().code == ErrorCode::kCorrupt);
    return 0;
  }
  FUZZ_CHECK(stored->world_size >= 1 && stored->world_size <= 65536);
  for (const auto& module : stored->model.modules) FUZZ_CHECK(module.call_order >= -1);
  const Bytes text = encode_model(stored->model, stored->framework, stored->world_size);
  const auto again = decode_model(text);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(again->model.modules.size() == stored->model.modules.size());
  FUZZ_CHECK(again->model.parameters.size() == stored->model.parameters.size());
  FUZZ_CHECK(encode_model(again->model, again->framework, again->world_size) == text);
  return 0;
}
