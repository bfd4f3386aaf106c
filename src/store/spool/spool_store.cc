#include "store/spool/spool_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/errors.h"
#include "store/local/local_store.h"
#include "store/spool/spool_pending_file.h"
#include "store/store_path.h"

namespace tornasole::store {
namespace {

class SpoolStore final : public Store {
 public:
  explicit SpoolStore(std::shared_ptr<Spool> spool) : spool_(std::move(spool)) {}

  std::string description() const override { return spool_->target().description(); }
  Capabilities capabilities() const noexcept override { return spool_->target().capabilities(); }
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override;
  Status create_exclusive(std::string_view path, ByteView content) override;
  Status sync_directory(std::string_view directory) override;
  Result<FileStatus> status(std::string_view path) override;
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override;
  Result<std::vector<Entry>> list_after(std::string_view directory, std::string_view after) override;
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override;
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override;
  Status remove(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Result<double> now_s() override;
  bool renew_root() override { return !spool_->must_wait() && spool_->target().renew_root(); }
  Status settle() override { return spool_->settle(); }
  void cancel() noexcept override { spool_->cancel(); }
  StoreTraffic traffic() const noexcept override { return spool_->traffic(); }

 private:
  FileStatus status_of(const SpoolAction& action) const {
    return {.size_bytes = action.size_bytes, .modified_s = spool_->spooled_at_s(action.number)};
  }

  const std::shared_ptr<Spool> spool_;  // shared with files that are being written
};

Error gone_error(std::string_view path, const Store& store) {
  return not_found_error("look at {} in {}: it was removed", path, store.description());
}

Result<std::unique_ptr<PendingFile>> SpoolStore::create(std::string_view path) {
  TORNASOLE_CHECK(check_new_path(path));
  return std::unique_ptr<PendingFile>(std::make_unique<SpoolPendingFile>(spool_, std::string(path)));
}

Status SpoolStore::create_exclusive(std::string_view path, ByteView content) {
  TORNASOLE_CHECK(check_new_path(path));
  if (!spool_->must_wait()) {
    Status created = spool_->target().create_exclusive(path, content);
    if (created.ok() || created.error().code != ErrorCode::kIo) return created;
    spool_->note_away(created.error());
  }
  TORNASOLE_TRY(const auto file, create(path));
  TORNASOLE_CHECK(file->append(content));
  return file->publish(/*replace=*/false);
}

Status SpoolStore::sync_directory(std::string_view directory) {
  TORNASOLE_CHECK(check_directory_path(directory));
  return spool_->must_wait() ? Status() : spool_->target().sync_directory(directory);
}

Result<FileStatus> SpoolStore::status(std::string_view path) {
  TORNASOLE_CHECK(check_directory_path(path));
  if (const auto action = spool_->waiting(path)) {
    if (action->kind == SpoolAction::Kind::kRemove) return gone_error(path, *this);
    return status_of(*action);
  }
  TORNASOLE_CHECK(spool_->check_reachable());
  return spool_->target().status(path);
}

Result<std::vector<Entry>> SpoolStore::list(std::string_view directory, bool recursive) {
  TORNASOLE_CHECK(check_directory_path(directory));
  TORNASOLE_CHECK(spool_->check_reachable());
  // Before the listing: what arrives in between is in both, and not in neither.
  const std::vector<SpoolAction> waiting = spool_->waiting_below(directory);
  TORNASOLE_TRY(auto entries, spool_->target().list(directory, recursive));
  const std::size_t skipped = directory.empty() ? 0 : directory.size() + 1;
  for (const SpoolAction& action : waiting) {
    const std::size_t slash = action.path.find('/', skipped);
    const bool is_below = !recursive && slash != std::string::npos;
    const std::string path = is_below ? action.path.substr(0, slash) : action.path;
    if (action.kind == SpoolAction::Kind::kRemove) {
      if (!is_below) std::erase_if(entries, [&](const Entry& entry) { return entry.path == path; });
      continue;
    }
    const auto found = std::ranges::find(entries, path, &Entry::path);
    const FileStatus status = is_below ? FileStatus{.is_directory = true} : status_of(action);
    if (found == entries.end()) {
      entries.push_back({path, status});
    } else if (!is_below) {
      found->status = status;
    }
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

Result<std::vector<Entry>> SpoolStore::list_after(std::string_view directory, std::string_view after) {
  if (spool_->must_wait()) return Store::list_after(directory, after);
  return spool_->target().list_after(directory, after);
}

Result<Bytes> SpoolStore::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  TORNASOLE_CHECK(check_path(path));
  if (const auto action = spool_->waiting(path)) {
    if (action->kind == SpoolAction::Kind::kRemove) return gone_error(path, *this);
    auto bytes = spool_->journal().read(spool_data_path(action->number), offset, length);
    // Sent since we looked: then the store has it.
    if (bytes.ok() || bytes.error().code != ErrorCode::kNotFound) return bytes;
  }
  TORNASOLE_CHECK(spool_->check_reachable());
  return spool_->target().read(path, offset, length);
}

Result<Bytes> SpoolStore::read_all(std::string_view path, std::uint64_t limit) {
  TORNASOLE_CHECK(check_path(path));
  if (const auto action = spool_->waiting(path)) {
    if (action->kind == SpoolAction::Kind::kRemove) return gone_error(path, *this);
    auto bytes = spool_->journal().read_all(spool_data_path(action->number), limit);
    if (bytes.ok() || bytes.error().code != ErrorCode::kNotFound) return bytes;
  }
  TORNASOLE_CHECK(spool_->check_reachable());
  return spool_->target().read_all(path, limit);
}

Status SpoolStore::remove(std::string_view path) {
  TORNASOLE_CHECK(check_path(path));
  if (!spool_->must_wait()) {
    Status removed = spool_->target().remove(path);
    if (removed.ok() || removed.error().code != ErrorCode::kIo) return removed;
    // A directory that is not empty is refused by a store that answers.
    if (spool_->target().status(path).ok()) return removed;
    spool_->note_away(removed.error());
  }
  const auto action = spool_->waiting(path);
  if (action && action->kind == SpoolAction::Kind::kRemove) return gone_error(path, *this);
  return spool_->add({.number = spool_->next_number(), .kind = SpoolAction::Kind::kRemove, .path = std::string(path)},
                     /*is_durable=*/false);
}

Status SpoolStore::rename(std::string_view from, std::string_view to) {
  if (!spool_->must_wait()) return spool_->target().rename(from, to);
  return unsupported_error("rename {} to {}: {} is away", from, to, description());
}

Result<double> SpoolStore::now_s() {
  TORNASOLE_CHECK(spool_->check_reachable());
  return spool_->target().now_s();
}

}  // namespace

Result<std::unique_ptr<Store>> open_spool_store(std::unique_ptr<Store> target, SpoolOptions options) {
  // Two hooks of one process may be open on one location, and one may follow the other.
  static std::atomic<std::uint64_t> count = 0;
  const ProcessIdentity process = this_process();
  FoundSpool self{.directory = fmt::format("{}/{}/{}-{}-{}", options.directory, spool_name(options.location),
                                           process.pid, process.start, ++count),
                  .owner = {options.location, process, system_clock().wall_seconds()}};
  TORNASOLE_TRY(auto journal, open_local_store(self.directory));
  return std::unique_ptr<Store>(std::make_unique<SpoolStore>(
      std::make_shared<Spool>(std::move(target), std::move(journal), std::move(options), std::move(self))));
}

}  // namespace tornasole::store
