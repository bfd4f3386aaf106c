#pragma once

// Dead runs to be repaired, and what every repair must leave behind.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "capture/run_directory.h"
#include "format/run_files.h"
#include "tools/made_trial.h"
#include "tools/repair.h"

namespace tornasole::tools {

using Files = std::map<std::string, Bytes>;

inline Files files_of(store::Store& store) {
  Files files;
  const auto entries = store.list("", /*recursive=*/true);
  EXPECT_TRUE(entries.ok());
  for (const store::Entry& entry : *entries) files[entry.path] = *store.read_all(entry.path, std::uint64_t{1} << 31);
  return files;
}

inline ProcessIdentity dead_process() {
  ProcessIdentity process = this_process();
  process.start += 1;  // the same number, but of another process that was before
  return process;
}

inline void write_health(MadeTrial& trial, const ProcessIdentity& process,
                         format::RunState state = format::RunState::kRunning, const std::string& worker = "worker_0") {
  format::Health health;
  health.process = process;
  health.state = state;
  health.run_id = "r";
  health.due = 5;
  health.committed = 2;
  health.last_committed = 1;
  trial.write(format::health_path(worker), format::encode_health(health));
}

inline MadeStep sample_step(std::int64_t step, const std::string& worker = "worker_0") {
  return {.step = step,
          .values = {{"a", tensor_of<float>({1, 2, 3})}, {"b", tensor_of<double>({4})}, {"c", tensor_of<float>({5})}},
          .mode = Mode::kEval,
          .mode_step = step * 2,
          .worker = worker};
}

// A run that died: steps 0 and 1 published, the claim and a health file that says running.
inline void make_dead(MadeTrial& trial) {
  trial.collections();
  trial.step(sample_step(0));
  trial.step(sample_step(1));
  trial.write(std::string(format::kClaimPath), format::encode_claim(dead_process()));
  write_health(trial, dead_process());
}

inline RepairOptions no_waiting() {
  RepairOptions options;
  options.sleep = [](double) {};
  return options;
}

inline Result<format::Index> index_at(MadeTrial& trial, std::int64_t step) {
  return format::decode_index(trial.read(format::index_path(step, "worker_0")));
}

// Whatever was published before is there unchanged, the result is sound, and a second repair finds nothing.
inline void expect_good_repair(store::Store& store, const Files& before) {
  const Files after = files_of(store);
  for (const auto& [path, content] : before) {
    const bool may_change = path.ends_with(".tmp") || path.ends_with("_health.json") || path.ends_with("claim.smd");
    if (may_change) continue;
    ASSERT_TRUE(after.contains(path)) << path;
    EXPECT_EQ(after.at(path), content) << path;
  }
  for (const auto& [path, content] : after) EXPECT_FALSE(path.ends_with(".tmp")) << path;
  const auto verified = verify(store, {.path = "t"});
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->is_sound_with_attempts());
  EXPECT_TRUE(verified->debris.empty());
  const auto again = repair(store, no_waiting());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(again->changes_nothing());
  EXPECT_EQ(files_of(store), after);
}

}  // namespace tornasole::tools
