// Compares what a training logged with what its trial holds:
//
//   survival_check LOG DIR [--bytes N]
//
// prints `finished committed readable lost partial damaged dropped` with their numbers. Exit 0 if no value is wrong, no
// step is half there without saying so, and the health file's sum is right; 1 otherwise.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/crc32c.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "format/run_files.h"
#include "store/local/local_store.h"
#include "survival/expected_value.h"

namespace tornasole::survival {
namespace {

struct Counts {
  long finished = 0, committed = 0, readable = 0, lost = 0, partial = 0, damaged = 0, dropped = 0;
  bool is_sound = true;
};

constexpr std::uint64_t kLimit = std::uint64_t{1} << 31;

// False if the value cannot be read or is not what was saved.
bool is_right(store::Store& store, const format::Index& index, const format::IndexEntry& entry, long step) {
  const auto bytes = store.read(index.event_file, entry.offset, entry.length);
  if (!bytes.ok()) return false;
  const auto record = format::decode_record(*bytes, entry.offset);
  if (!record.ok() || masked_crc32c(record->payload) != entry.crc) return false;
  const auto event = format::decode_event(record->payload);
  if (!event.ok() || event->name != entry.name || entry.name[0] != 't') return false;
  const Tensor tensor = event->to_tensor();
  const auto expected =
      expected_value(step, std::atol(entry.name.c_str() + 1), static_cast<std::size_t>(tensor.element_count()));
  return tensor.bytes().size() == expected.size() * sizeof(float) &&
         std::memcmp(tensor.bytes().data(), expected.data(), tensor.bytes().size()) == 0;
}

Counts check(const std::string& log, const std::string& directory) {
  Counts counts;
  std::set<long> finished;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) finished.insert(std::atol(line.c_str()));
  counts.finished = static_cast<long>(finished.size());
  auto opened = store::open_local_store(std::filesystem::absolute(directory), {.read_only = true});
  if (!opened.ok()) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    counts.is_sound = false;
    return counts;
  }
  store::Store& store = **opened;
  std::set<long> whole;
  std::size_t values_per_step = 0;
  const auto entries = store.list("index", /*recursive=*/true);
  for (const store::Entry& file : entries.ok() ? *entries : std::vector<store::Entry>{}) {
    const auto name = format::parse_step_file(file.path, ".json");
    if (!name) continue;  // a temporary file
    ++counts.committed;
    const auto text = store.read_all(file.path, kLimit);
    const auto index = text.ok() ? format::decode_index(*text) : Result<format::Index>(text.error());
    bool is_step_right = index.ok();
    if (index.ok()) {
      for (const format::IndexEntry& entry : index->tensors) {
        is_step_right = is_step_right && is_right(store, *index, entry, name->step);
      }
      if (index->is_partial) {
        ++counts.partial;
      } else {
        // Every whole step holds the same tensors.
        if (values_per_step == 0) values_per_step = index->tensors.size();
        is_step_right = is_step_right && index->tensors.size() == values_per_step;
      }
    }
    if (is_step_right) {
      ++counts.readable;
      whole.insert(name->step);
    } else {
      ++counts.damaged;
      std::fprintf(stderr, "damaged: %s\n", file.path.c_str());
    }
  }
  for (const long step : finished) counts.lost += whole.contains(step) ? 0 : 1;
  counts.is_sound = counts.damaged == 0;
  const auto text = store.read_all(format::health_path("worker_0"), kLimit);
  if (!text.ok()) return counts;
  const auto health = format::decode_health(*text);
  counts.is_sound = counts.is_sound && health.ok();
  if (!health.ok()) return counts;
  for (const auto& [cause, steps] : health->dropped) counts.dropped += steps;
  // The sum holds once the run is over. A signal's flush is a glance at a run that still goes on.
  const bool is_over = health->state != format::RunState::kRunning && !health->reason.starts_with("signal");
  if (is_over && health->due != health->committed + counts.dropped) {
    std::fprintf(stderr, "due %lld is not committed %lld plus dropped %ld\n", static_cast<long long>(health->due),
                 static_cast<long long>(health->committed), counts.dropped);
    counts.is_sound = false;
  }
  return counts;
}

}  // namespace
}  // namespace tornasole::survival

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "use: survival_check LOG DIR\n");
    return 2;
  }
  const auto counts = tornasole::survival::check(argv[1], argv[2]);
  std::printf("finished %ld committed %ld readable %ld lost %ld partial %ld damaged %ld dropped %ld\n", counts.finished,
              counts.committed, counts.readable, counts.lost, counts.partial, counts.damaged, counts.dropped);
  return counts.is_sound ? 0 : 1;
}
