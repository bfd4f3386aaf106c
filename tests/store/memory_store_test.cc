#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "store/conformance.h"

namespace tornasole::store {
namespace {

TEST(MemoryStore, TimesComeFromTheClockThatWasSet) {
  MemoryStore store;
  store.set_now_s(1000.5);
  EXPECT_EQ(*store.now_s(), 1000.5);
  ASSERT_TRUE(put(store, "f", "x").ok());
  store.set_now_s(2000);
  EXPECT_EQ(store.status("f")->modified_s, 1000.5);
  ASSERT_TRUE(put(store, "f", "y", /*replace=*/true).ok());
  EXPECT_EQ(store.status("f")->modified_s, 2000);
}

TEST(MemoryStore, AClockMayBeGiven) {
  struct Fixed final : Clock {
    double wall_seconds() const noexcept override { return 7; }
    std::int64_t monotonic_ns() const noexcept override { return 0; }
  } clock;
  EXPECT_EQ(*MemoryStore(clock).now_s(), 7);
}

TEST(MemoryStore, SharedStoresSeeOneContent) {
  auto first = std::make_unique<MemoryStore>();
  const auto second = first->share();
  ASSERT_TRUE(put(*first, "f", "x").ok());
  first.reset();
  EXPECT_EQ(*second->read_all("f", 1), "x");
  EXPECT_EQ(code_of(second->create_exclusive("f", "y")), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace tornasole::store
