// Index packs save requests and change no answer, whatever they hold.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "format/index_pack.h"
#include "support/remote_store.h"
#include "trial_world.h"

namespace tornasole::trial {
namespace {

const std::vector<std::string> kWorkers = {"worker_0", "worker_1"};
constexpr std::int64_t kLastStep = 99;

class PackWorld : public TrialWorld {
 public:
  PackWorld() {
    write_collections(kWorkers);
    for (std::int64_t step = 0; step <= kLastStep; ++step) write_step(step, 1);
    end();
    clock().advance(10);
  }

  // With values of its own: `seed` makes other ones of the same length.
  void write_step(std::int64_t step, float seed) {
    for (const std::string& worker : kWorkers) write_part(step, worker, seed);
  }
  void write_part(std::int64_t step, const std::string& worker, float seed) {
    std::vector<WrittenTensor> tensors = {{"a", {static_cast<float>(step), seed, 3}}};
    if (worker == "worker_1" && step % 7 == 3) tensors.push_back({"late", {seed}});
    write({.step = step, .worker = worker, .mode_step = train(step), .tensors = tensors});
  }
  std::string index_of(std::int64_t step, const std::string& worker) { return format::index_path(step, worker); }
  Bytes content(const std::string& path) { return *store().read_all(path, store::kMaxReadBytes); }

  Bytes make_pack(std::int64_t first, std::int64_t last, const std::string& worker) {
    Bytes pack;
    for (std::int64_t step = first; step <= last; ++step) {
      const std::string path = index_of(step, worker);
      const Bytes text = content(path);
      format::append_to_index_pack({path, store::version_of(text), text}, &pack);
    }
    return pack;
  }
  std::string write_pack(std::int64_t first, std::int64_t last, const std::string& worker) {
    const std::string path = format::index_pack_path({first, last, worker});
    put(path, make_pack(first, last, worker));
    return path;
  }
  // All of both workers, in four packs.
  void write_packs() {
    for (const std::string& worker : kWorkers) {
      write_pack(0, 63, worker);
      write_pack(64, kLastStep, worker);
    }
  }

  Result<Trial> open_remote(const TrialOptions& given = {}) {
    TrialOptions options = given;
    options.path = "/trials/world";
    options.timeout_s = 0;
    requests.reads.clear();
    requests.lists.clear();
    TrialDependencies needed = dependencies();
    needed.store = std::make_unique<store::RemoteStore>(std::move(needed.store), &requests);
    needed.threads = threads;
    return open_trial(options, config::Environment(std::map<std::string, std::string>()), std::move(needed));
  }

  store::RemoteRequests requests;
  unsigned threads = 0;
};

// Everything a trial answers, as text.
std::string answers_of(const Result<Trial>& trial) {
  if (!trial.ok()) return trial.error().message;
  std::string text;
  for (const std::string& worker : trial->workers()) text += worker + " ";
  for (const ModeStep step : trial->steps(Mode::kTrain)) text += std::to_string(step.number) + " ";
  const auto names = trial->tensor_names();
  for (const std::string& name : *names) text += name + " ";
  const Status swept = trial->sweep({}, [&](const SweptValue& value) {
    text += fmt::format(
        "{} {} {} {}\n", value.name, value.worker, value.global_step.number,
        value.value != nullptr ? *reinterpret_cast<const float*>(value.value->data() + 4 * (value.name == "a")) : -1);
    return true;
  });
  EXPECT_TRUE(swept.ok());
  return text + trial->last_index_token();
}

// The same trial on a store where packs do not count, since its files are on a disk.
std::string local_answers(PackWorld& world) { return answers_of(world.open({.timeout_s = 0})); }

TEST(IndexPacks, StandForTheFilesTheyRepeat) {
  for (const unsigned threads : {1U, 2U, 5U, 64U}) {
    PackWorld world;
    world.threads = threads;
    const std::string expected = local_answers(world);
    EXPECT_EQ(answers_of(world.open_remote()), expected);
    EXPECT_EQ(world.requests.reads_below("index/"), 200);
    world.write_packs();
    const auto trial = world.open_remote();
    EXPECT_EQ(answers_of(trial), expected);
    EXPECT_EQ(trial->damage_count(), 0);
    EXPECT_EQ(world.requests.reads_below("index/"), 0);
    EXPECT_EQ(world.requests.reads_below("tornasole/packs/"), 4);
  }
}

TEST(IndexPacks, AFileThatIsNotAsTheyRepeatItIsReadItself) {
  PackWorld world;
  world.write_packs();
  // Replaced by other bytes of the same length, by more bytes, and taken away.
  world.write_part(5, "worker_0", 2);
  world.write({.step = 70, .worker = "worker_1", .mode_step = train(70), .tensors = {{"other", {1, 5}}}});
  world.remove(world.index_of(64, "worker_0"));
  world.write_step(kLastStep + 1, 1);
  const auto trial = world.open_remote();
  EXPECT_EQ(answers_of(trial), local_answers(world));
  EXPECT_EQ(trial->damage_count(), 0);
  EXPECT_TRUE(trial->has_tensor("other"));
  EXPECT_EQ(world.requests.reads_below("index/"), 4) << "two that changed, two that no pack has";
  EXPECT_EQ(world.requests.reads[world.index_of(5, "worker_0")], 1);
  EXPECT_EQ(trial->workers_at(GlobalStep{64}), std::vector<std::string>{"worker_1"});
}

TEST(IndexPacks, DamagedOnesCostRequestsAndNothingElse) {
  PackWorld world;
  const std::string expected = local_answers(world);
  const Bytes sound = world.make_pack(0, 63, "worker_0");
  Bytes flipped = sound;
  flipped[sound.size() / 2] ^= 1;
  Bytes huge = sound;
  huge.resize(format::kMaxIndexPackBytes + 1);
  const struct {
    const char* what;
    Bytes pack;
  } cases[] = {
      {"cut inside a record", sound.substr(0, sound.size() - 5)},
      {"a changed bit", flipped},
      {"something else", Bytes(1000, 'x')},
      {"something behind it", sound + "x"},
      {"longer than any", huge},
  };
  for (const auto& c : cases) {
    world.write_packs();
    world.put(format::index_pack_path({0, 63, "worker_0"}), c.pack);
    for (const OnDamage on_damage : {OnDamage::kSkip, OnDamage::kFail}) {
      const auto trial = world.open_remote({.on_damage = on_damage});
      EXPECT_EQ(answers_of(trial), expected) << c.what;
      ASSERT_EQ(trial->damage().size(), 1U) << c.what;
      EXPECT_EQ(trial->damage()[0].path, format::index_pack_path({0, 63, "worker_0"}));
      EXPECT_NE(trial->damage()[0].what.find("not used"), std::string::npos) << trial->damage()[0].what;
      EXPECT_EQ(world.requests.reads_below("index/"), 64) << c.what;
    }
  }
}

TEST(IndexPacks, WhatTheyLackOrClaimIsMadeUpFor) {
  PackWorld world;
  const std::string expected = local_answers(world);
  const std::string path = format::index_pack_path({0, kLastStep, "worker_0"});
  const Bytes text = world.content(world.index_of(0, "worker_0"));
  Bytes nonsense;
  Bytes nameless;
  for (std::int64_t step = 0; step <= kLastStep; ++step) {
    const std::string file = world.index_of(step, "worker_0");
    const Bytes right = world.content(file);
    format::append_to_index_pack({file, store::version_of(right), Bytes(right.size(), '{')}, &nonsense);
    format::append_to_index_pack({file, "another", right}, &nameless);
  }
  const struct {
    const char* what;
    Bytes pack;
  } cases[] = {
      {"empty", ""},
      {"half of them, cut between two records", world.make_pack(0, 49, "worker_0")},
      {"those of another worker", world.make_pack(0, kLastStep, "worker_1")},
      {"the right versions of what is no index", nonsense},
      {"other versions", nameless},
  };
  for (const auto& c : cases) {
    world.put(path, c.pack);
    const auto trial = world.open_remote();
    EXPECT_EQ(answers_of(trial), expected) << c.what;
    EXPECT_EQ(trial->damage_count(), 0) << c.what;
    EXPECT_EQ(world.requests.reads_below("tornasole/packs/"), 1) << c.what;
  }
}

// One change of a text: a byte, a piece lost, a piece again, the rest gone, another's piece in it.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::size_t pick(std::size_t count) { return random_() % count; }
  Bytes mutate(Bytes text, const Bytes& other) {
    const std::size_t at = pick(text.size());
    switch (pick(5)) {
      case 0: text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1 + pick(255))); break;
      case 1: text.erase(at, 1 + pick(40)); break;
      case 2: text.insert(at, text.substr(pick(text.size()), 1 + pick(40))); break;
      case 3: text.resize(at); break;
      default: text.insert(at, other.substr(pick(other.size()), 1 + pick(40))); break;
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

TEST(IndexPacks, MutatedOnesChangeNoAnswer) {
  PackWorld world;
  const std::string expected = local_answers(world);
  world.write_packs();
  const std::string path = format::index_pack_path({0, 63, "worker_0"});
  const Bytes sound = world.make_pack(0, 63, "worker_0");
  const Bytes other = world.make_pack(0, 63, "worker_1");
  for (unsigned seed = 0; seed < 300; ++seed) {
    Mutator mutator(seed);
    const Bytes pack = mutator.mutate(sound, other);
    world.put(path, pack);
    const auto trial = world.open_remote();
    ASSERT_EQ(answers_of(trial), expected) << "seed " << seed;
    // Whole records of a pack may be lost or come twice; whatever else became of it shows.
    const bool is_sound = format::decode_index_pack(pack).ok();
    EXPECT_EQ(trial->damage_count(), is_sound ? 0 : 1) << "seed " << seed;
    EXPECT_LE(world.requests.reads_below("index/"), 64) << "seed " << seed;
  }
}

// Checksums stop nearly all of the above: here they are true, and what they cover is not.
TEST(IndexPacks, MutatedEntriesChangeNoAnswer) {
  PackWorld world;
  const std::string expected = local_answers(world);
  world.write_packs();
  for (unsigned seed = 0; seed < 300; ++seed) {
    Mutator mutator(seed);
    const std::int64_t changed = static_cast<std::int64_t>(mutator.pick(64));
    Bytes pack;
    for (std::int64_t step = 0; step <= 63; ++step) {
      std::string path = world.index_of(step, "worker_0");
      const Bytes sound = world.content(path);
      std::string version = store::version_of(sound);
      Bytes text = sound;
      if (step == changed) {
        const Bytes other = world.content(world.index_of(step / 2, "worker_1"));
        switch (mutator.pick(3)) {
          case 0:
            path = mutator.mutate(path, world.index_of(static_cast<std::int64_t>(mutator.pick(200)), "worker_1"));
            break;
          case 1: version = mutator.mutate(version, store::version_of(other)); break;
          default: text = mutator.mutate(sound, other); break;
        }
        // A text of the file's length under the file's own tag is what the tag stands for, by the word of its writer.
        if (text != sound && text.size() == sound.size()) text += ' ';
      }
      format::append_to_index_pack({path, version, text}, &pack);
    }
    world.put(format::index_pack_path({0, 63, "worker_0"}), pack);
    const auto trial = world.open_remote();
    ASSERT_EQ(answers_of(trial), expected) << "seed " << seed;
    EXPECT_LE(world.requests.reads_below("index/"), 64) << "seed " << seed;
  }
}

TEST(IndexPacks, ThatDoNotPayAreNotRead) {
  PackWorld world;
  const std::string expected = local_answers(world);
  // Names that claim every step, each larger than its share of the files would be one by one.
  Bytes padded = world.make_pack(0, kLastStep, "worker_0");
  padded.resize(format::kMaxIndexPackBytes);
  for (std::int64_t last = 1000; last < 1020; ++last) world.put(format::index_pack_path({0, last, "worker_0"}), padded);
  world.put("tornasole/packs/notes.txt", "hello");
  const auto trial = world.open_remote();
  EXPECT_EQ(answers_of(trial), expected);
  EXPECT_EQ(world.requests.reads_below("tornasole/packs/"), 0);
  EXPECT_EQ(world.requests.reads_below("index/"), 200);
}

TEST(IndexPacks, OfTheRangeAreEnough) {
  PackWorld world;
  world.write_packs();
  const auto trial = world.open_remote({.first_step = 10, .end_step = 60});
  EXPECT_EQ(numbers(trial->steps(Mode::kTrain)), range(10, 59));
  EXPECT_EQ(world.requests.reads_below("tornasole/packs/"), 2);
  EXPECT_EQ(world.requests.reads_below("index/"), 0);
}

TEST(IndexPacks, ARunThatIsFollowedIsNotAskedForThemAtEachLook) {
  PackWorld world;
  world.remove(std::string(format::kEndMarkerPath));
  world.write_packs();
  auto trial = world.open_remote();
  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(world.requests.reads_below("index/"), 0);
  world.requests.lists.clear();
  for (std::int64_t step = kLastStep + 1; step < kLastStep + 6; ++step) {
    world.write_step(step, 1);
    ASSERT_TRUE(trial->refresh().ok());
    EXPECT_EQ(trial->steps(Mode::kTrain).back().number, step);
  }
  EXPECT_EQ(world.requests.reads_below("index/"), 10);
  EXPECT_EQ(std::ranges::count(world.requests.lists, std::string(format::kIndexPackDirectory)), 0);
  EXPECT_EQ(answers_of(trial), local_answers(world));
}

}  // namespace
}  // namespace tornasole::trial
