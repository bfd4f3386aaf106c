// Packs of a hook whose store is across a network: when they come, what they repeat, and what their failure costs.

#include "capture/index_packer.h"

#include "capture/hook_fixture.h"
#include "format/paths.h"
#include "support/remote_store.h"

namespace tornasole::capture {
namespace {

// Notes in which order files are published, and takes no packs if it is told so.
class OrderedStore final : public store::ForwardingStore {
 public:
  OrderedStore(std::unique_ptr<Store> base, std::vector<std::string>* published, bool takes_packs)
      : ForwardingStore(std::move(base)), published_(*published), takes_packs_(takes_packs) {}

  Result<std::unique_ptr<store::PendingFile>> create(std::string_view path) override {
    const bool is_pack = path.starts_with(format::kIndexPackDirectory);
    if (is_pack && !takes_packs_) return Error{ErrorCode::kIo, "no packs here"};
    auto file = ForwardingStore::create(path);
    if (!file.ok()) return file;
    return std::unique_ptr<store::PendingFile>(
        std::make_unique<File>(std::move(*file), std::string(path), &published_));
  }

 private:
  class File final : public store::ForwardingFile {
   public:
    File(std::unique_ptr<PendingFile> base, std::string path, std::vector<std::string>* published)
        : ForwardingFile(std::move(base)), path_(std::move(path)), published_(*published) {}
    Status publish(bool replace) override {
      published_.push_back(path_);
      return ForwardingFile::publish(replace);
    }

   private:
    const std::string path_;
    std::vector<std::string>& published_;
  };

  std::vector<std::string>& published_;
  const bool takes_packs_;
};

class IndexPackerTest : public HookFixture {
 protected:
  Hook open_remote(HookOptions options, bool takes_packs = true) {
    options.out_dir = "/nowhere/run";
    options.save_all = true;
    options.save_config = {.save_interval = 1};
    options.when_full = WhenFull::kBlock;
    options.log = [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) log_.emplace_back(text);
    };
    auto remote = std::make_unique<store::RemoteStore>(store_->share(), &requests_);
    auto hook = open_hook(std::move(options),
                          {.store = std::make_unique<OrderedStore>(std::move(remote), &published_, takes_packs)});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  static void train(Hook& hook, int steps) {
    for (int i = 0; i < steps; ++i) hook.begin_step(Mode::kTrain).save("x", std::vector<float>{1, 2});
  }
  std::vector<std::string> packs() {
    std::vector<std::string> paths;
    const auto entries = store_->list(format::kIndexPackDirectory, true);
    for (const store::Entry& entry : *entries) paths.push_back(entry.path);
    return paths;
  }
  std::ptrdiff_t place_of(const std::string& path) { return std::ranges::find(published_, path) - published_.begin(); }

  store::RemoteRequests requests_;
  std::vector<std::string> published_;  // the hook's thread only, until it is closed
};

TEST_F(IndexPackerTest, RepeatsWhatWasPublishedBefore) {
  Hook hook = open_remote({});
  train(hook, 300);
  ASSERT_TRUE(hook.close().ok());
  const std::string first = format::index_pack_path({0, 255, "worker_0"});
  const std::string rest = format::index_pack_path({256, 299, "worker_0"});
  EXPECT_EQ(packs(), (std::vector<std::string>{first, rest}));
  EXPECT_GT(place_of(first), place_of(format::index_path(255, "worker_0")));
  EXPECT_GT(place_of(rest), place_of(format::index_path(299, "worker_0")));
  EXPECT_TRUE(log_.empty());

  std::size_t count = 0;
  for (const std::string& path : {first, rest}) {
    const Bytes pack = *store_->read_all(path, format::kMaxIndexPackBytes);
    const auto entries = format::decode_index_pack(pack);
    ASSERT_TRUE(entries.ok());
    for (const format::PackedIndex& entry : *entries) {
      EXPECT_EQ(entry.path, format::index_path(static_cast<std::int64_t>(count++), "worker_0"));
      EXPECT_EQ(Bytes(entry.text), *store_->read_all(entry.path, 1 << 20U));
      EXPECT_EQ(entry.version, store::version_of(entry.text));
    }
  }
  EXPECT_EQ(count, 300U);
}

TEST_F(IndexPackerTest, AShortRunAndARunOnADiskHaveNone) {
  {
    Hook hook = open_remote({});
    train(hook, 31);
    ASSERT_TRUE(hook.close().ok());
    EXPECT_EQ(packs(), std::vector<std::string>());
  }
  renew_store();
  Hook hook = open({.save_config = {.save_interval = 1}, .save_all = true});
  train(hook, 300);
  ASSERT_TRUE(hook.close().ok());
  EXPECT_EQ(packs(), std::vector<std::string>());
}

TEST_F(IndexPackerTest, APackThatIsRefusedCostsNoStepAndOneWarning) {
  Hook hook = open_remote({}, /*takes_packs=*/false);
  train(hook, 600);
  EXPECT_TRUE(hook.close().ok());
  EXPECT_EQ(hook.report().committed_steps, 600);
  EXPECT_EQ(warnings_with("an index pack is left out"), 1);
  EXPECT_EQ(read_steps(*store_).size(), 600U);
}

TEST_F(IndexPackerTest, GoesWithTheStepsItRepeats) {
  {
    Hook hook = open_remote({.keep_steps = 100});
    train(hook, 520);
    ASSERT_TRUE(hook.close().ok());
  }
  const std::vector<std::string> kept = {format::index_pack_path({256, 511, "worker_0"})};
  EXPECT_EQ(packs(), kept) << "the last eight steps are too few for one";
  // What an earlier process left goes, too.
  store_->remove(std::string(format::kEndMarkerPath)).ok();
  Hook hook = open_remote({.resume = true, .keep_steps = 100});
  train(hook, 110);
  ASSERT_TRUE(hook.close().ok());
  EXPECT_EQ(packs(), std::vector<std::string>{format::index_pack_path({520, 629, "worker_0"})});
}

TEST(IndexPacker, HoldsFewMebibytes) {
  store::MemoryStore memory;
  store::RemoteRequests requests;
  store::RemoteStore store(memory.share(), &requests);
  IndexPacker packer(&store, "w", /*is_tidying=*/false);
  const Bytes large(format::kMaxPackedIndexBytes, 'x');
  int added = 0;
  for (; !packer.is_due(); ++added) packer.add({added, format::index_path(added, "w"), large, "v"});
  EXPECT_EQ(added, 16);
  ASSERT_TRUE(packer.write().ok());
  const auto written = store.status(format::index_pack_path({0, 15, "w"}));
  ASSERT_TRUE(written.ok());
  EXPECT_LE(written->size_bytes, format::kMaxIndexPackBytes);
  EXPECT_FALSE(packer.is_due()) << "a new one begins";
  // Too long, or without a version: no part of a pack.
  for (int i = 0; i < 300; ++i) packer.add({i, format::index_path(i, "w"), large + "x", "v"});
  for (int i = 0; i < 300; ++i) packer.add({i, format::index_path(i, "w"), "{}", ""});
  EXPECT_FALSE(packer.is_due());
}

}  // namespace
}  // namespace tornasole::capture
