// The conformance suite against a real endpoint: TORNASOLE_TEST_S3 names the bucket, the variables of AWS the rest.
// tests/s3/s3_servers_test.py starts the servers and runs this program.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/errors.h"
#include "store/conformance.h"
#include "store/s3/s3_store.h"
#include "store/spool/spool_store.h"

namespace tornasole::store {
namespace {

s3::S3Environment process_environment() {
  return {.variable = [](std::string_view name) -> std::optional<std::string> {
            const char* value = std::getenv(std::string(name).c_str());
            return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
          },
          .read_file = [](const std::string& path, std::size_t) -> Result<std::string> {
            return not_found_error("{}: no files here", path);
          }};
}

std::string bucket() {
  const char* name = std::getenv("TORNASOLE_TEST_S3");
  return name == nullptr ? "" : name;
}

std::unique_ptr<Store> open(const std::string& prefix) {
  auto store =
      open_s3_store("s3://" + bucket() + "/" + prefix, {.retry_budget_s = 30, .environment = process_environment()});
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? std::move(*store) : nullptr;
}

std::string new_prefix() {
  static std::atomic<int> count = 0;
  return "conformance/" + std::to_string(getpid()) + "/" + std::to_string(++count);
}

const StoreBackend kBackends[] = {
    {"S3", [](const std::string&) { return open(new_prefix() + "/root"); }},
    {"S3WithSpool",
     [](const std::string& directory) {
       auto store =
           open_spool_store(open(new_prefix() + "/root"), {.directory = directory + "/spool", .location = "x"});
       EXPECT_TRUE(store.ok());
       return store.ok() ? std::move(*store) : nullptr;
     }},
    {"S3Escaped", [](const std::string&) { return open(new_prefix() + "/a b+c=d%e/\xC3\xA4"); }}};

INSTANTIATE_TEST_SUITE_P(Servers, StoreConformance, testing::ValuesIn(kBackends), backend_name);

class S3Server : public testing::Test {
 protected:
  std::string prefix_ = new_prefix();
  std::unique_ptr<Store> store_ = open(prefix_);
};

TEST_F(S3Server, NamesThatNeedEscapingComeBack) {
  const std::vector<std::string> names = {"a b", "a+b", "a=b",  "a%20b",  "a&b",      "a?b",
                                          "a#b", "a'b", "a\"b", "<a>",    "\xC3\xA4", "a;b",
                                          "a,b", "a:b", "a@b",  "a!*()b", "a~b",      "\xE2\x82\xAC/\xF0\x9F\x98\x80",
                                          "a$b", "a|b"};
  for (const std::string& name : names) ASSERT_TRUE(put(*store_, "n/" + name, name).ok()) << name;
  for (const std::string& name : names) {
    const auto content = store_->read_all("n/" + name, 100);
    ASSERT_TRUE(content.ok()) << content.error().message;
    EXPECT_EQ(*content, name);
    EXPECT_TRUE(store_->status("n/" + name).ok()) << name;
  }
  std::vector<std::string> expected;
  for (const std::string& name : names) expected.push_back("n/" + name);
  std::ranges::sort(expected);
  EXPECT_EQ(listed(*store_, "n", true), expected);
  for (const std::string& name : names) EXPECT_TRUE(store_->remove("n/" + name).ok()) << name;
  EXPECT_TRUE(listed(*store_, "n", true).empty());
}

TEST_F(S3Server, LargeFilesGoUpInPartsAndComeBackInRanges) {
  Bytes content((std::size_t{18} << 20U) + 12345, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 2654435761U >> 13U);
  auto file = store_->create("large");
  ASSERT_TRUE(file.ok());
  for (std::size_t at = 0; at < content.size(); at += 524288) {
    ASSERT_TRUE((*file)->append(ByteView(content).substr(at, 524288)).ok());
  }
  EXPECT_EQ(store_->status("large").ok(), false) << "nobody sees it before it is published";
  const Status published = (*file)->publish(false);
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(store_->status("large")->size_bytes, content.size());
  const auto range = store_->read("large", 9'000'000, 100'000);
  ASSERT_TRUE(range.ok()) << range.error().message;
  EXPECT_TRUE(*range == content.substr(9'000'000, 100'000));
  const auto whole = store_->read_all("large", content.size());
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_TRUE(*whole == content);
  EXPECT_EQ(code_of(put(*store_, "large", "x")), ErrorCode::kInvalid);
}

TEST_F(S3Server, TheSamePublishedTwiceIsSuccessAndOtherBytesAreNot) {
  ASSERT_TRUE(put(*store_, "f", "same").ok());
  EXPECT_TRUE(put(*store_, "f", "same").ok());
  EXPECT_EQ(code_of(put(*store_, "f", "other")), ErrorCode::kInvalid);
  EXPECT_EQ(code_of(put(*store_, "f", "some")), ErrorCode::kInvalid) << "as long, but not the same";
  EXPECT_EQ(*store_->read_all("f", 10), "same");
}

TEST_F(S3Server, ListsFromAPlaceOn) {
  for (const char* path : {"i/1/a", "i/1/b", "i/2/a", "i/3/a"}) ASSERT_TRUE(put(*store_, path, "x").ok());
  const auto after = store_->list_after("i", "i/1/b");
  ASSERT_TRUE(after.ok()) << after.error().message;
  std::vector<std::string> paths;
  for (const Entry& entry : *after) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"i/2/a", "i/3/a"}));
  EXPECT_EQ(store_->list_after("i", "")->size(), 4U);
  EXPECT_TRUE(store_->list_after("i", "i/9")->empty());
}

TEST_F(S3Server, ABucketThatIsNotThereIsNamedAndNotMade) {
  auto elsewhere = open_s3_store("s3://no-such-bucket-here/x", {.environment = process_environment()});
  ASSERT_TRUE(elsewhere.ok());
  for (int round = 0; round < 2; ++round) {
    const auto written = put(**elsewhere, "f", "x");
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find("'no-such-bucket-here' does not exist"), std::string::npos)
        << written.error().message;
  }
  EXPECT_FALSE((*elsewhere)->list("", true).ok());
}

TEST_F(S3Server, RequestsAreCounted) {
  const StoreTraffic before = store_->traffic();
  ASSERT_TRUE(put(*store_, "f", "12345").ok());
  ASSERT_TRUE(store_->read_all("f", 10).ok());
  ASSERT_TRUE(store_->read("f", 1, 2).ok());
  ASSERT_TRUE(store_->list("", true).ok());
  const StoreTraffic after = store_->traffic();
  EXPECT_GE(after.puts - before.puts, 1U);
  EXPECT_GE(after.gets - before.gets, 2U);
  EXPECT_GE(after.lists - before.lists, 1U);
  EXPECT_GE(after.bytes_written - before.bytes_written, 5U);
}

}  // namespace
}  // namespace tornasole::store
