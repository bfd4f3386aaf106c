// Large files of a local store on their way past the page cache: the same bytes whatever way they took.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <vector>

#include "conformance.h"
#include "store/local/direct_memory.h"
#include "store/local/file_handle.h"
#include "store/local/local_store.h"

namespace tornasole::store {
namespace {

namespace fs = std::filesystem;

Bytes content_of(std::size_t bytes, unsigned seed) {
  std::mt19937 draw(seed);
  Bytes content(bytes, '\0');
  for (char& byte : content) byte = static_cast<char>(draw());
  return content;
}

class DirectWritesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_local_store(directory_.path() + "/root");
    ASSERT_TRUE(opened.ok());
    store_ = std::move(*opened);
  }
  Store& store() { return *store_; }
  std::string path(const std::string& name) const { return directory_.path() + "/root/" + name; }
  std::unique_ptr<PendingFile> create(const std::string& name) {
    auto file = store_->create(name);
    EXPECT_TRUE(file.ok());
    (*file)->let_keep(true);
    return std::move(*file);
  }
  // Where no file can be written directly there is nothing to see.
  bool is_possible() {
    DirectMemory memory(true);
    const FileHandle directory(open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return memory.take(directory.get()) != nullptr;
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(DirectWritesTest, BytesAreTheSameHoweverTheyCome) {
  std::mt19937 draw(7);
  const std::size_t sizes[] = {1, 100, 4095, 4096, 4097, 70'000, 131'072, 500'000, 2'097'152, 3'000'001};
  for (int run = 0; run < 30; ++run) {
    const std::string name = "f" + std::to_string(run);
    auto file = create(name);
    Bytes whole;
    for (int i = 0; i < 12; ++i) {
      const Bytes piece = content_of(sizes[draw() % std::size(sizes)], static_cast<unsigned>(draw()));
      if (draw() % 5 == 0) file->let_keep(draw() % 2 == 0);
      ASSERT_TRUE(file->append(piece).ok());
      whole += piece;
      EXPECT_EQ(file->size_bytes(), whole.size());
      if (draw() % 4 != 0) continue;
      ASSERT_TRUE(file->flush().ok());
      EXPECT_EQ(fs::file_size(path(name + ".tmp")), whole.size()) << "what was flushed has left the process";
    }
    ASSERT_TRUE(file->publish(/*replace=*/false).ok());
    ASSERT_EQ(*store().read_all(name, whole.size()), whole) << run;
  }
}

TEST_F(DirectWritesTest, NothingIsKeptThatMayNotBe) {
  auto file = create("f");
  file->let_keep(false);
  ASSERT_TRUE(file->append(content_of(3'000'000, 1)).ok());
  EXPECT_EQ(fs::file_size(path("f.tmp")), 3'000'000U);
  file->let_keep(true);
  ASSERT_TRUE(file->append(content_of(100'000, 2)).ok());
  file->let_keep(false);
  ASSERT_TRUE(file->append("x").ok());
  EXPECT_EQ(fs::file_size(path("f.tmp")), 3'100'001U);
}

TEST_F(DirectWritesTest, WhatIsKeptIsReadBackAndSynced) {
  const Bytes content = content_of(1'000'000, 1);
  auto file = create("f");
  ASSERT_TRUE(file->append(content).ok());
  EXPECT_EQ(*file->read_back(0, content.size()), content);
  ASSERT_TRUE(file->append(content).ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_EQ(fs::file_size(path("f.tmp")), 2 * content.size());
  ASSERT_TRUE(file->append(content).ok());
  file->abandon();
  EXPECT_TRUE(listed(store(), "", true).empty());
}

TEST_F(DirectWritesTest, LargeFilesStayOutOfThePageCache) {
  if (!is_possible()) GTEST_SKIP() << "the file system takes no direct writes";
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  constexpr std::size_t kPage = 4096;
  auto file = create("f");
  ASSERT_TRUE(file->append(content_of(kBytes, 1)).ok());
  ASSERT_TRUE(file->publish(/*replace=*/false).ok());
  const FileHandle written(open(path("f").c_str(), O_RDONLY | O_CLOEXEC));
  void* mapped = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, written.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> pages(kBytes / kPage);
  ASSERT_EQ(mincore(mapped, kBytes, pages.data()), 0);
  munmap(mapped, kBytes);
  std::size_t cached = 0;
  for (const unsigned char page : pages) cached += page & 1U;
  EXPECT_LT(cached, pages.size() / 8);
}

TEST_F(DirectWritesTest, ADiskThatIsFullIsToldAndNothingIsLeft) {
  ASSERT_TRUE(put(store(), "before", "x").ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {3'000'000, 3'000'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto file = create("d/big");
    if (!file->append(Bytes(2'500'000, 'a')).ok()) _exit(1);
    Status status = file->append(Bytes(400'000, 'b'));
    if (status.ok()) status = file->append(Bytes(400'000, 'c'));
    if (status.ok()) status = file->publish(/*replace=*/false);
    if (status.ok() || status.error().code != ErrorCode::kIo) _exit(2);
    if (code_of(file->publish(/*replace=*/false)) != ErrorCode::kIo) _exit(3);
    file.reset();
    _exit(listed(store(), "", true) == std::vector<std::string>{"before"} ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(DirectWritesTest, ASlowDiskIsLeftToTheKernelForAWhile) {
  if (!is_possible()) GTEST_SKIP() << "the file system takes no direct writes";
  const auto file = create("f");
  const FileHandle written(open(path("f.tmp").c_str(), O_RDONLY | O_CLOEXEC));
  const auto files_passed = [&](DirectMemory& memory) {
    int passed = 0;
    while (passed < 1000) {
      auto block = memory.take(written.get());
      if (block) return passed;
      ++passed;
    }
    return passed;
  };
  constexpr std::size_t kMany = std::size_t{20} << 20;
  DirectMemory memory(true);
  EXPECT_EQ(files_passed(memory), 0);
  memory.note(kMany, 0.01);
  EXPECT_EQ(files_passed(memory), 0) << "2 GB/s";
  memory.note(1000, 5);
  EXPECT_EQ(files_passed(memory), 0) << "too little to judge by";
  memory.note(kMany, 0.2);
  EXPECT_EQ(files_passed(memory), 256) << "4 MB/s";
  memory.refuse();
  EXPECT_EQ(files_passed(memory), 1000);
  DirectMemory unwanted(false);
  EXPECT_EQ(files_passed(unwanted), 1000);
}

}  // namespace
}  // namespace tornasole::store
