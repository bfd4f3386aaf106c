// Any bytes as the event file of a step that was never published: what repair takes from them must be readable through
// the index it writes.

#include "format/index.h"
#include "fuzz_check.h"
#include "store/memory/memory_store.h"
#include "tools/salvage.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tornasole;
  const ByteView bytes(reinterpret_cast<const char*>(data), size);
  store::MemoryStore store;
  FUZZ_CHECK(store.create_exclusive("events/x", bytes).ok());
  auto file = tools::EventFile::open(store, "events/x");
  FUZZ_CHECK(file.ok());
  // The step is that of the first record, if there is one.
  const auto first = file->record_at(0);
  const std::int64_t step = first.ok() ? first->event.global_step : 7;
  auto salvage = tools::salvage_records(*file, step);
  FUZZ_CHECK(salvage.ok());
  FUZZ_CHECK(salvage->lost_bytes <= size);
  salvage->index.event_file = "events/x";
  const auto index = format::decode_index(format::encode_index(salvage->index));
  FUZZ_CHECK(index.ok() || salvage->index.tensors.empty());
  std::uint64_t end = 0;
  for (const format::IndexEntry& entry : salvage->index.tensors) {
    FUZZ_CHECK(entry.offset >= end);
    end = entry.offset + entry.length;
    FUZZ_CHECK(end <= size);
    const auto value = file->value(entry);
    FUZZ_CHECK(value.ok() && value->is_verified);
  }
  return 0;
}
