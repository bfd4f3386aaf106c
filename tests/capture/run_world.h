#pragma once

// A trial directory for tests of RunDirectory: on a disk or in memory, with the time under the test's control, and
// processes that are really alive or really dead.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/run_directory.h"
#include "format/paths.h"
#include "gtest/gtest.h"
#include "store/local/local_store.h"
#include "store/memory/memory_store.h"

namespace tornasole::capture {

class FakeClock final : public Clock {
 public:
  double wall_seconds() const noexcept override { return wall_s; }
  std::int64_t monotonic_ns() const noexcept override { return static_cast<std::int64_t>(wall_s * 1e9); }
  double wall_s = 1.8e9;
};

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = ::testing::TempDir() + "tornasole-run-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A child that lives until it is killed or this object goes.
class LiveProcess {
 public:
  LiveProcess() {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      const std::int64_t start = this_process().start;
      if (write(ends[1], &start, sizeof start) != sizeof start) _exit(1);
      while (true) pause();
    }
    identity_ = this_process();
    identity_.pid = pid_;
    if (read(ends[0], &identity_.start, sizeof identity_.start) != sizeof identity_.start) std::abort();
    close(ends[0]);
    close(ends[1]);
  }
  ~LiveProcess() { kill_and_collect(); }
  LiveProcess(const LiveProcess&) = delete;
  LiveProcess& operator=(const LiveProcess&) = delete;

  const ProcessIdentity& identity() const { return identity_; }
  void kill_without_collecting() const { kill(pid_, SIGKILL); }
  void kill_and_collect() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  ProcessIdentity identity_;
};

inline ProcessIdentity dead_process() {
  LiveProcess process;
  process.kill_and_collect();
  return process.identity();
}
inline ProcessIdentity remote_process() { return {.host = "elsewhere", .pid = 4711, .start = 99}; }

class World {
 public:
  explicit World(bool is_local) {
    if (is_local) {
      directory_ = std::make_unique<TemporaryDirectory>();
      auto opened = store::open_local_store(root());
      if (!opened.ok()) std::abort();
      store_ = std::move(*opened);
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      clock.wall_s = static_cast<double>(now.tv_sec);
    } else {
      auto memory = std::make_unique<store::MemoryStore>(clock);
      memory_ = memory.get();
      store_ = std::move(memory);
    }
  }

  store::Store& store() { return *store_; }
  std::string root() const { return directory_->path() + "/trial"; }
  bool is_local() const { return directory_ != nullptr; }

  // A file that was last written `age_s` ago.
  void put(const std::string& path, ByteView content, double age_s = 0) {
    if (memory_ != nullptr) memory_->set_now_s(clock.wall_s - age_s);
    auto file = store_->create(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE((*file)->append(content).ok());
    const Status published = (*file)->publish(true);
    ASSERT_TRUE(published.ok()) << published.error().message;
    if (memory_ != nullptr) {
      memory_->set_now_s(clock.wall_s);
    } else if (age_s != 0) {
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      now.tv_sec -= static_cast<time_t>(age_s);
      const timespec times[2] = {now, now};
      ASSERT_EQ(utimensat(AT_FDCWD, (root() + "/" + path).c_str(), times, 0), 0);
    }
  }
  void put_health(const std::string& worker, const ProcessIdentity& process, double age_s = 0,
                  format::RunState state = format::RunState::kRunning, const std::string& run_id = "old") {
    format::Health health{.process = process, .state = state, .run_id = run_id};
    health.heartbeat = clock.wall_s - age_s;
    put(format::health_path(worker), format::encode_health(health), age_s);
  }
  void put_step(std::int64_t step, const std::string& worker = "worker_0", double age_s = 100) {
    put(format::event_path(step, worker), "values of " + std::to_string(step), age_s);
    put(format::index_path(step, worker), "index of " + std::to_string(step), age_s);
  }
  // What a killed run leaves: two steps, a third under way, its claim and its health.
  void put_dead_run(const ProcessIdentity& process) {
    put(format::collections_path("worker_0"), "collections", 100);
    put_step(3);
    put_step(1007);
    put(format::event_path(1008, "worker_0") + ".tmp", "half", 100);
    put(std::string(format::kClaimPath), format::encode_claim(process), 100);
    put_health("worker_0", process, 100);
  }

  bool has(std::string_view path) { return store_->status(path).ok(); }
  std::string text(std::string_view path) {
    auto read = store_->read_all(path, 1 << 20);
    return read.ok() ? *read : "(none)";
  }
  std::vector<std::string> files(std::string_view directory = "") {
    std::vector<std::string> paths;
    const auto entries = store_->list(directory, true);
    for (const store::Entry& entry : *entries) paths.push_back(entry.path);
    return paths;
  }

  RunIdentity identity(const ProcessIdentity& process = this_process()) const {
    RunIdentity identity;
    identity.process = process;
    identity.run_id = make_run_id();
    identity.start_time = clock.wall_s;
    return identity;
  }

  FakeClock clock;

 private:
  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<store::Store> store_;
  store::MemoryStore* memory_ = nullptr;
};

inline const auto kNoSleep = [](double) {};

// Passes every call on; a test overrides what it wants to go wrong.
class WrappedStore : public store::Store {
 public:
  explicit WrappedStore(store::Store* inner) : inner_(*inner) {}
  std::string description() const override { return inner_.description(); }
  store::Capabilities capabilities() const noexcept override { return inner_.capabilities(); }
  Result<std::unique_ptr<store::PendingFile>> create(std::string_view path) override { return inner_.create(path); }
  Status create_exclusive(std::string_view path, ByteView content) override {
    return inner_.create_exclusive(path, content);
  }
  Status sync_directory(std::string_view directory) override { return inner_.sync_directory(directory); }
  Result<store::FileStatus> status(std::string_view path) override { return inner_.status(path); }
  Result<std::vector<store::Entry>> list(std::string_view directory, bool recursive) override {
    return inner_.list(directory, recursive);
  }
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override {
    return inner_.read(path, offset, length);
  }
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override { return inner_.read_all(path, limit); }
  Status remove(std::string_view path) override { return inner_.remove(path); }
  Status rename(std::string_view from, std::string_view to) override { return inner_.rename(from, to); }
  Result<double> now_s() override { return inner_.now_s(); }
  bool renew_root() override { return inner_.renew_root(); }

 protected:
  store::Store& inner_;
};

}  // namespace tornasole::capture
