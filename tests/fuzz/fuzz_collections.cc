// Collections files: whatever is accepted is within its bounds, and survives being written and read again.

#include "format/collections_file.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = decode_collections(fuzz_text(data, size));
  if (!file.ok()) {
    FUZZ_CHECK(file.error().code == ErrorCode::kCorrupt);
    return 0;
  }
  FUZZ_CHECK(file->num_workers >= 1 && file->num_workers <= 65536);
  const Bytes text = encode_collections(*file);
  const auto again = decode_collections(text);
  FUZZ_CHECK(again.ok() && again->is_verified);
  FUZZ_CHECK(again->collections == file->collections);
  FUZZ_CHECK(encode_collections(*again) == text);
  return 0;
}
