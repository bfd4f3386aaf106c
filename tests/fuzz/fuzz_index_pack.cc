// Index packs: what is taken out of one gives the same pack when it is put together again; names likewise.

#include "format/index_pack.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz_text(data, size);
  const auto entries = decode_index_pack(bytes);
  if (entries.ok()) {
    Bytes again;
    for (const PackedIndex& entry : *entries) {
      FUZZ_CHECK(!entry.path.empty() && !entry.version.empty());
      append_to_index_pack(entry, &again);
    }
    FUZZ_CHECK(again == bytes);
  } else {
    FUZZ_CHECK(entries.error().code == ErrorCode::kCorrupt);
  }
  if (const auto name = parse_index_pack_path(bytes)) FUZZ_CHECK(index_pack_path(*name) == bytes);
  // The checksums stop nearly every mutation, so the input is also what a pack is made of.
  const std::size_t half = size / 2;
  Bytes made;
  append_to_index_pack({bytes.substr(0, half), bytes.substr(half, 7), bytes.substr(half)}, &made);
  append_to_index_pack({"path", "version", bytes}, &made);
  const auto read = decode_index_pack(made);
  if (read.ok()) FUZZ_CHECK(read->back().text == bytes);
  return 0;
}
