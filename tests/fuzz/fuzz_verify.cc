// Any bytes as an index file and as the event file it names, cut from the input in two: verify ends with a report,
// reads little, and finds the same the second time.

#include "format/paths.h"
#include "fuzz_check.h"
#include "store/memory/memory_store.h"
#include "tools/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tornasole;
  if (size < 2) return 0;
  const ByteView bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = (data[0] + 256U * data[1]) % (bytes.size() + 1);
  store::MemoryStore store;
  FUZZ_CHECK(store.create_exclusive(format::index_path(7, "worker_0"), bytes.substr(0, cut)).ok());
  FUZZ_CHECK(store.create_exclusive(format::event_path(7, "worker_0"), bytes.substr(cut)).ok());
  const auto report = tools::verify(store, {.path = "t"});
  FUZZ_CHECK(report.ok());
  FUZZ_CHECK(!report->missing.empty());  // there is no collections file
  const auto again = tools::verify(store, {.path = "t"});
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(again->values == report->values && again->damaged.count == report->damaged.count);
  return 0;
}
