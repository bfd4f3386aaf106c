#include "store/store_path.h"

#include <gtest/gtest.h>

#include "store/store.h"

namespace tornasole::store {
namespace {

TEST(StorePath, SplitsAtTheLastSlash) {
  EXPECT_EQ(split_path("a/b/c").directory, "a/b");
  EXPECT_EQ(split_path("a/b/c").name, "c");
  EXPECT_EQ(split_path("c").directory, "");
  EXPECT_EQ(split_path("c").name, "c");
}

TEST(StorePath, OrdinaryNamesArePaths) {
  for (const char* path : {"a", "a/b", "..a", "a..", "...", ".hidden/x", "a b/\n", "events/000000000000/0_worker.x"}) {
    EXPECT_TRUE(check_path(path).ok()) << path;
  }
  EXPECT_TRUE(check_path(std::string(255, 'x')).ok());
}

TEST(StorePath, AFileBeingWrittenNeedsRoomForItsTemporaryName) {
  EXPECT_TRUE(check_new_path(std::string(251, 'x')).ok());
  EXPECT_FALSE(check_new_path(std::string(252, 'x')).ok());
}

TEST(StorePath, MessagesStayShortWhateverTheLength) {
  const auto refused = check_path(std::string(1'000'000, 'x'));
  ASSERT_FALSE(refused.ok());
  EXPECT_LT(refused.error().message.size(), 300U) << refused.error().message.size();
}

}  // namespace
}  // namespace tornasole::store
