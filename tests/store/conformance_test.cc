#include "store/conformance.h"

#include "store/local/local_store.h"
#include "store/memory/memory_store.h"
#include "support/faulty_store.h"

namespace tornasole::store {
namespace {

std::unique_ptr<Store> make_local(const std::string& directory, SystemCalls calls) {
  auto store = open_local_store(directory + "/parent/root", {.calls = calls});
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? std::move(*store) : nullptr;
}

std::unique_ptr<Store> make_crash(const std::string&) {
  auto store = CrashStore::open(std::make_unique<MemoryStore>(), {.seed = 1});
  return store.ok() ? std::move(*store) : nullptr;
}

const StoreBackend kBackends[] = {
    {"Local", [](const std::string& directory) { return make_local(directory, {}); }},
    {"LocalWithoutOpenat2", [](const std::string& directory) { return make_local(directory, {.openat2 = false}); }},
    {"LocalWithoutRenameat2",
     [](const std::string& directory) { return make_local(directory, {.openat2 = false, .renameat2 = false}); }},
    {"Memory", [](const std::string&) { return std::make_unique<MemoryStore>(); }},
    {"Failing",
     [](const std::string& directory) {
       return std::make_unique<FailingStore>(make_local(directory, {}),
                                             std::make_shared<FailureControl>(FailurePlan{.first = 0}));
     }},
    {"Slow",
     [](const std::string&) {
       return std::make_unique<SlowStore>(std::make_unique<MemoryStore>(), std::make_shared<SlowControl>(1e15));
     }},
    {"Hang",
     [](const std::string&) {
       return std::make_unique<HangStore>(std::make_unique<MemoryStore>(), std::make_shared<HangControl>(0));
     }},
    {"Crash", make_crash},
};

INSTANTIATE_TEST_SUITE_P(Backends, StoreConformance, testing::ValuesIn(kBackends), backend_name);

}  // namespace
}  // namespace tornasole::store
