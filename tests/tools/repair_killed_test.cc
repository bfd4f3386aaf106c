#include <gtest/gtest.h>

#include <memory>

#include "base/errors.h"
#include "store/memory/memory_store.h"
#include "support/forwarding_store.h"
#include "tools/dead_runs.h"

namespace tornasole::tools {
namespace {

// Every call that changes something fails from the n-th on, as if the repair had been killed there.
class KilledStore final : public store::ForwardingStore {
 public:
  KilledStore(std::unique_ptr<store::Store> base, int calls) : ForwardingStore(std::move(base)), rest_(calls) {}
  bool was_killed() const { return rest_ < 0; }

  Result<std::unique_ptr<store::PendingFile>> create(std::string_view path) override {
    if (is_dead()) return io_error("killed");
    return ForwardingStore::create(path);
  }
  Status create_exclusive(std::string_view path, ByteView content) override {
    return is_dead() ? Status(io_error("killed")) : ForwardingStore::create_exclusive(path, content);
  }
  Status remove(std::string_view path) override {
    return is_dead() ? Status(io_error("killed")) : ForwardingStore::remove(path);
  }
  Status rename(std::string_view from, std::string_view to) override {
    return is_dead() ? Status(io_error("killed")) : ForwardingStore::rename(from, to);
  }

 private:
  bool is_dead() { return --rest_ < 0; }
  int rest_;
};

TEST(Repair, KilledAnywhereItCanBeRunAgain) {
  bool was_killed = true;
  int points = 0;
  for (int calls = 0; was_killed; ++calls) {
    SCOPED_TRACE(calls);
    store::MemoryStore store;
    MadeTrial trial(store);
    make_dead(trial);
    trial.write_temporary(format::event_path(2, "worker_0"), MadeTrial::encode(sample_step(2)).events);
    trial.write_temporary(format::index_path(2, "worker_0"), "half");
    const auto other = MadeTrial::encode(sample_step(3));
    trial.write(other.index.event_file, other.events);
    trial.write_temporary(format::index_path(3, "worker_0"), format::encode_index(other.index));
    const Files before = files_of(store);
    {
      KilledStore killed(store.share(), calls);
      const auto first = repair(killed, no_waiting());
      was_killed = killed.was_killed();
      EXPECT_TRUE(first.ok() || was_killed);
    }
    // The announcement of the killed process counts as that of this one, which lives.
    for (const auto& [path, content] : files_of(store)) {
      if (!path.starts_with("claim-")) continue;
      ASSERT_TRUE(store.remove(path).ok());
    }
    const auto second = repair(store, no_waiting());
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_EQ(index_at(trial, 2)->tensors.size(), 3U);
    EXPECT_EQ(index_at(trial, 3)->tensors.size(), 3U);
    expect_good_repair(store, before);
    ++points;
  }
  EXPECT_GT(points, 6);
}

}  // namespace
}  // namespace tornasole::tools
