// The checkpoint state: a cut file gives a prefix of what the whole one gives.

#include "format/run_files.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz_text(data, size);
  bool was_cut = false;
  const auto records = decode_checkpoint_state(text, &was_cut);
  if (!records.ok()) {
    FUZZ_CHECK(records.error().code == ErrorCode::kCorrupt);
    return 0;
  }
  const Bytes written = encode_checkpoint_state(*records);
  const auto again = decode_checkpoint_state(written, &was_cut);
  FUZZ_CHECK(again.ok() && !was_cut && encode_checkpoint_state(*again) == written);
  const auto cut = decode_checkpoint_state(text.substr(0, size / 2), &was_cut);
  FUZZ_CHECK(cut.ok() && cut->size() <= records->size());
  return 0;
}
