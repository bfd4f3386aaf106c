#include "support/crash_store.h"

#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "base/errors.h"
#include "store/memory/memory_store.h"
#include "store/store_path.h"
#include "support/crash_journal.h"

namespace tornasole::store {
namespace {

constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();

Status write_file(Store& store, std::string_view path, ByteView content, bool replace) {
  TORNASOLE_TRY(auto file, store.create(path));
  TORNASOLE_CHECK(file->append(content));
  return file->publish(replace);
}

// Makes the store hold exactly these files.
Status write_disk(Store& store, const CrashJournal::Disk& disk) {
  TORNASOLE_TRY(const auto entries, store.list("", /*recursive=*/true));
  for (const Entry& entry : entries) {
    if (!disk.contains(entry.path)) TORNASOLE_CHECK(store.remove(entry.path));
  }
  for (const auto& [path, content] : disk) TORNASOLE_CHECK(write_file(store, path, content, /*replace=*/true));
  return {};
}

}  // namespace

// The computer: its caches, its disk, and whether it is on.
struct CrashStore::Machine {
  Machine(std::unique_ptr<Store> base_in, CrashOptions options_in, const CrashJournal::Disk& disk)
      : base(std::move(base_in)), options(options_in), journal(disk) {}

  const std::unique_ptr<Store> base;
  const CrashOptions options;
  MemoryStore live;

  std::mutex mutex;
  // guarded by mutex
  CrashJournal journal;
  std::int64_t write_calls = 0;
  bool is_off = false;

  Status turn_off() {
    if (is_off) return {};
    is_off = true;
    std::mt19937_64 random(options.seed);
    return write_disk(*base, journal.crash(random));
  }
  Status check_on(std::string_view action, std::string_view path) const {
    if (is_off) return io_error("{} {}: the power is off", action, path);
    return {};
  }
  Status begin_write(std::string_view action, std::string_view path) {
    if (!is_off && ++write_calls == options.crash_at_call) TORNASOLE_CHECK(turn_off());
    return check_on(action, path);
  }
};

class CrashStore::File final : public PendingFile {
 public:
  File(std::shared_ptr<Machine> machine, std::string path, std::unique_ptr<PendingFile> live)
      : machine_(std::move(machine)),
        path_(std::move(path)),
        temporary_(path_ + std::string(kTemporarySuffix)),
        id_(machine_->journal.create(temporary_)),
        live_(std::move(live)) {}
  ~File() override { abandon(); }

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override {
    const std::lock_guard lock(machine_->mutex);
    TORNASOLE_CHECK(machine_->begin_write("append to", path_));
    TORNASOLE_CHECK(live_->append(pieces));
    machine_->journal.append(id_, pieces);
    return {};
  }
  Status sync() override {
    const std::lock_guard lock(machine_->mutex);
    TORNASOLE_CHECK(machine_->begin_write("sync", path_));
    TORNASOLE_CHECK(live_->sync());
    machine_->journal.sync(id_);
    return {};
  }
  Status publish(bool replace) override {
    const std::lock_guard lock(machine_->mutex);
    TORNASOLE_CHECK(machine_->begin_write("publish", path_));
    TORNASOLE_CHECK(live_->publish(replace));
    machine_->journal.rename(temporary_, path_);
    is_done_ = true;
    return {};
  }
  void abandon() noexcept override {
    if (is_done_) return;
    is_done_ = true;
    const std::lock_guard lock(machine_->mutex);
    live_->abandon();
    if (!machine_->is_off) machine_->journal.remove(temporary_);
  }
  std::uint64_t size_bytes() const noexcept override { return live_->size_bytes(); }

 private:
  const std::shared_ptr<Machine> machine_;  // shared with the store, which may go first
  const std::string path_;
  const std::string temporary_;
  const CrashJournal::FileId id_;
  const std::unique_ptr<PendingFile> live_;
  bool is_done_ = false;
};

Result<std::unique_ptr<CrashStore>> CrashStore::open(std::unique_ptr<Store> base, CrashOptions options) {
  CrashJournal::Disk disk;
  TORNASOLE_TRY(const auto entries, base->list("", /*recursive=*/true));
  for (const Entry& entry : entries) {
    TORNASOLE_TRY(disk[entry.path], base->read_all(entry.path, kAnySize));
  }
  auto machine = std::make_shared<Machine>(std::move(base), options, disk);
  for (const auto& [path, content] : disk) {
    TORNASOLE_CHECK(write_file(machine->live, path, content, /*replace=*/false));
  }
  return std::unique_ptr<CrashStore>(new CrashStore(std::move(machine)));  // the constructor is private
}

CrashStore::CrashStore(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}

CrashStore::~CrashStore() {
  const std::lock_guard lock(machine_->mutex);
  // A base that cannot be written keeps its old state, which is a state a crash may leave too.
  if (machine_->is_off) return;
  if (machine_->options.crash_when_destroyed) {
    (void)machine_->turn_off();
  } else {
    (void)write_disk(*machine_->base, machine_->journal.without_crash());
  }
}

Status CrashStore::crash() {
  const std::lock_guard lock(machine_->mutex);
  return machine_->turn_off();
}

bool CrashStore::has_crashed() const {
  const std::lock_guard lock(machine_->mutex);
  return machine_->is_off;
}

std::int64_t CrashStore::write_calls() const {
  const std::lock_guard lock(machine_->mutex);
  return machine_->write_calls;
}

Store& CrashStore::base() noexcept { return *machine_->base; }
std::string CrashStore::description() const { return machine_->base->description(); }

Result<std::unique_ptr<PendingFile>> CrashStore::create(std::string_view path) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->begin_write("create", path));
  TORNASOLE_TRY(auto live, machine_->live.create(path));
  return std::unique_ptr<PendingFile>(std::make_unique<File>(machine_, std::string(path), std::move(live)));
}

Status CrashStore::create_exclusive(std::string_view path, ByteView content) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->begin_write("create", path));
  TORNASOLE_CHECK(machine_->live.create_exclusive(path, content));
  machine_->journal.append(machine_->journal.create(path), std::span<const ByteView>(&content, 1));
  return {};
}

Status CrashStore::sync_directory(std::string_view directory) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->begin_write("sync directory", directory));
  TORNASOLE_CHECK(machine_->live.sync_directory(directory));
  machine_->journal.sync_directory(directory);
  return {};
}

Status CrashStore::remove(std::string_view path) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->begin_write("remove", path));
  TORNASOLE_CHECK(machine_->live.remove(path));
  machine_->journal.remove(path);
  return {};
}

Status CrashStore::rename(std::string_view from, std::string_view to) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->begin_write("rename", from));
  TORNASOLE_CHECK(machine_->live.rename(from, to));
  machine_->journal.rename(from, to);
  return {};
}

Result<FileStatus> CrashStore::status(std::string_view path) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->check_on("look at", path));
  return machine_->live.status(path);
}

Result<std::vector<Entry>> CrashStore::list(std::string_view directory, bool recursive) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->check_on("list", directory));
  return machine_->live.list(directory, recursive);
}

Result<Bytes> CrashStore::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->check_on("read", path));
  return machine_->live.read(path, offset, length);
}

Result<Bytes> CrashStore::read_all(std::string_view path, std::uint64_t limit) {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->check_on("read", path));
  return machine_->live.read_all(path, limit);
}

Result<double> CrashStore::now_s() {
  const std::lock_guard lock(machine_->mutex);
  TORNASOLE_CHECK(machine_->check_on("read", "the clock"));
  return machine_->live.now_s();
}

}  // namespace tornasole::store
