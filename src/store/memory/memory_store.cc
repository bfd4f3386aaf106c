#include "store/memory/memory_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/errors.h"
#include "store/store_path.h"

namespace tornasole::store {
namespace {

struct FileData {
  Bytes bytes;
  double modified_s = 0;
};
struct Node {
  // Shared: a file keeps its data while its name changes. Null for a directory.
  std::shared_ptr<FileData> file;
  double made_s = 0;

  FileStatus status() const {
    if (file == nullptr) return {0, made_s, true};
    return {file->bytes.size(), file->modified_s, false};
  }
};
using Nodes = std::map<std::string, Node, std::less<>>;

bool is_below(std::string_view path, std::string_view directory) {
  return directory.empty()
             ? !path.empty()
             : path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

Error taken_error(std::string_view action, std::string_view path) {
  return invalid_error("{} {}: there is something at that name already", action, path);
}

}  // namespace

struct MemoryStore::Content {
  explicit Content(const Clock& clock_in) : clock(&clock_in) {}

  std::mutex mutex;
  const Clock* clock;
  // guarded by mutex
  std::optional<double> stopped_at;
  Nodes nodes;  // by path; "" is the root, once something was written

  double now() const { return stopped_at.value_or(clock->wall_seconds()); }
  const Node* find(std::string_view path) const {
    const auto found = nodes.find(path);
    return found == nodes.end() ? nullptr : &found->second;
  }
  Status make_directory(std::string_view directory, std::string_view action);
  Status check_parents(std::string_view path, std::string_view action) const;
  Result<const FileData*> find_file(std::string_view path) const;
  // The first node below the directory; its descendants need not follow each other without a gap ("a-b" < "a/b").
  Nodes::const_iterator first_below(std::string_view directory) const {
    return directory.empty() ? nodes.begin() : nodes.lower_bound(std::string(directory) + '/');
  }
};

Status MemoryStore::Content::make_directory(std::string_view directory, std::string_view action) {
  if (const Node* node = find(directory); node != nullptr) {
    if (node->file == nullptr) return {};
    return io_error("{}: {} is a file, not a directory", action, directory);
  }
  if (!directory.empty()) TORNASOLE_CHECK(make_directory(split_path(directory).directory, action));
  nodes.emplace(directory, Node{nullptr, now()});
  return {};
}

// As a file system would say it: a file in the place of a directory is damage, not absence.
Status MemoryStore::Content::check_parents(std::string_view path, std::string_view action) const {
  while (!path.empty()) {
    path = split_path(path).directory;
    const Node* node = find(path);
    if (node != nullptr && node->file != nullptr) {
      return corrupt_error("{}: {} is a file, not a directory", action, path);
    }
  }
  return {};
}

Result<const FileData*> MemoryStore::Content::find_file(std::string_view path) const {
  TORNASOLE_CHECK(check_parents(path, "read"));
  const Node* node = find(path);
  if (node == nullptr) return not_found_error("read {}: no such file", path);
  if (node->file == nullptr) return corrupt_error("read {}: not a regular file", path);
  return static_cast<const FileData*>(node->file.get());
}

// A pending file is known by its data: whoever removed the temporary name and made another there did not make this one.
class MemoryStore::File final : public PendingFile {
 public:
  File(std::shared_ptr<Content> content, std::string path, std::shared_ptr<FileData> data)
      : content_(std::move(content)),
        path_(std::move(path)),
        temporary_(path_ + std::string(kTemporarySuffix)),
        data_(std::move(data)) {}
  ~File() override { abandon(); }

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override {
    if (data_ == nullptr) return done_error("append to");
    if (is_closed_) return invalid_error("append to {}: the file is closed already", path_);
    const std::lock_guard lock(content_->mutex);
    for (const ByteView piece : pieces) data_->bytes.append(piece);
    data_->modified_s = content_->now();
    size_bytes_ = data_->bytes.size();
    return {};
  }
  Status sync() override {
    if (data_ == nullptr) return done_error("sync");
    if (is_closed_) return invalid_error("sync {}: the file is closed already", path_);
    return {};
  }
  Status publish(bool replace) override;
  void abandon() noexcept override;
  std::uint64_t size_bytes() const noexcept override { return size_bytes_; }

 private:
  Error done_error(const char* action) const {
    return invalid_error("{} {}: the file was published or abandoned already", action, path_);
  }
  bool has_temporary() const {
    const Node* node = content_->find(temporary_);
    return node != nullptr && node->file == data_;
  }

  const std::shared_ptr<Content> content_;  // shared with the store, which may go first
  const std::string path_;
  const std::string temporary_;
  std::shared_ptr<FileData> data_;  // shared with the node; null once published or abandoned
  std::uint64_t size_bytes_ = 0;
  bool is_closed_ = false;
};

Status MemoryStore::File::publish(bool replace) {
  if (data_ == nullptr) return done_error("publish");
  is_closed_ = true;
  const std::lock_guard lock(content_->mutex);
  if (!has_temporary()) return io_error("publish {}: its temporary file {} was removed meanwhile", path_, temporary_);
  const auto target = content_->nodes.find(path_);
  if (target != content_->nodes.end()) {
    if (!replace) return taken_error("publish", path_);
    if (target->second.file == nullptr) return io_error("publish {}: there is a directory at that name", path_);
  }
  content_->nodes[path_] = Node{data_, 0};
  content_->nodes.erase(temporary_);
  data_.reset();
  return {};
}

void MemoryStore::File::abandon() noexcept {
  if (data_ == nullptr) return;
  const std::lock_guard lock(content_->mutex);
  if (has_temporary()) content_->nodes.erase(content_->nodes.find(temporary_));
  data_.reset();
}

MemoryStore::MemoryStore(const Clock& clock) : content_(std::make_shared<Content>(clock)) {}
MemoryStore::MemoryStore(std::shared_ptr<Content> content) : content_(std::move(content)) {}
MemoryStore::~MemoryStore() = default;

std::unique_ptr<MemoryStore> MemoryStore::share() const {
  return std::unique_ptr<MemoryStore>(new MemoryStore(content_));  // the constructor is private
}

void MemoryStore::set_now_s(double now_s) {
  const std::lock_guard lock(content_->mutex);
  content_->stopped_at = now_s;
}

Result<std::unique_ptr<PendingFile>> MemoryStore::create(std::string_view path) {
  TORNASOLE_CHECK(check_new_path(path));
  std::string temporary = fmt::format("{}{}", path, kTemporarySuffix);
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_CHECK(content_->make_directory(split_path(path).directory, fmt::format("create {}", path)));
  if (content_->find(temporary) != nullptr) {
    return io_error("create {}: there is something at that temporary name already; it is left alone", temporary);
  }
  auto data = std::make_shared<FileData>(FileData{{}, content_->now()});
  auto file = std::make_unique<File>(content_, std::string(path), data);
  content_->nodes.emplace(std::move(temporary), Node{std::move(data), 0});
  return std::unique_ptr<PendingFile>(std::move(file));
}

Status MemoryStore::create_exclusive(std::string_view path, ByteView content) {
  TORNASOLE_CHECK(check_new_path(path));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_CHECK(content_->make_directory(split_path(path).directory, fmt::format("create {}", path)));
  if (content_->find(path) != nullptr) return taken_error("create", path);
  auto data = std::make_shared<FileData>(FileData{Bytes(content), content_->now()});
  content_->nodes.emplace(path, Node{std::move(data), 0});
  return {};
}

Status MemoryStore::sync_directory(std::string_view directory) {
  TORNASOLE_CHECK(check_directory_path(directory));
  const std::lock_guard lock(content_->mutex);
  if (directory.empty()) return {};
  const Node* node = content_->find(directory);
  if (node == nullptr || node->file != nullptr) return io_error("sync directory {}: no such directory", directory);
  return {};
}

Result<FileStatus> MemoryStore::status(std::string_view path) {
  TORNASOLE_CHECK(check_directory_path(path));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_CHECK(content_->check_parents(path, "look at"));
  const Node* node = content_->find(path);
  if (node == nullptr) return not_found_error("look at {}: no such file or directory", path);
  return node->status();
}

Result<std::vector<Entry>> MemoryStore::list(std::string_view directory, bool recursive) {
  TORNASOLE_CHECK(check_directory_path(directory));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_CHECK(content_->check_parents(directory, "list"));
  const Node* start = content_->find(directory);
  if (start != nullptr && start->file != nullptr) {
    return corrupt_error("list {}: a file, not a directory", directory);
  }
  std::vector<Entry> entries;
  for (auto at = content_->first_below(directory); at != content_->nodes.end(); ++at) {
    const auto& [path, node] = *at;
    if (path.empty()) continue;
    if (!is_below(path, directory)) break;
    const bool is_wanted = recursive ? node.file != nullptr : split_path(path).directory == directory;
    if (is_wanted) entries.push_back({path, node.status()});
  }
  return entries;
}

Result<Bytes> MemoryStore::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  TORNASOLE_CHECK(check_path(path));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_TRY(const FileData* file, content_->find_file(path));
  if (offset >= file->bytes.size()) return Bytes();
  const std::uint64_t wanted = std::min<std::uint64_t>(length, file->bytes.size() - offset);
  if (wanted > kMaxReadBytes) {
    return invalid_error("read {}: {} bytes at once; at most {} are allowed", path, wanted, kMaxReadBytes);
  }
  return file->bytes.substr(offset, wanted);
}

Result<Bytes> MemoryStore::read_all(std::string_view path, std::uint64_t limit) {
  TORNASOLE_CHECK(check_path(path));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_TRY(const FileData* file, content_->find_file(path));
  if (file->bytes.size() > limit) {
    return corrupt_error("read {}: {} bytes, at most {} are allowed", path, file->bytes.size(), limit);
  }
  return file->bytes;
}

Status MemoryStore::remove(std::string_view path) {
  TORNASOLE_CHECK(check_path(path));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_CHECK(content_->check_parents(path, "remove"));
  const auto found = content_->nodes.find(path);
  if (found == content_->nodes.end()) return not_found_error("remove {}: no such file or directory", path);
  if (found->second.file == nullptr) {
    const auto next = content_->first_below(path);
    if (next != content_->nodes.end() && is_below(next->first, path)) {
      return io_error("remove {}: the directory is not empty", path);
    }
  }
  content_->nodes.erase(found);
  return {};
}

Status MemoryStore::rename(std::string_view from, std::string_view to) {
  TORNASOLE_CHECK(check_path(from));
  TORNASOLE_CHECK(check_path(to));
  const std::lock_guard lock(content_->mutex);
  TORNASOLE_CHECK(content_->check_parents(from, "rename"));
  if (content_->find(from) == nullptr) return not_found_error("rename {}: no such file or directory", from);
  if (from == to || is_below(to, from)) {
    return invalid_error("rename {} to {}: it cannot be moved onto or into itself", from, to);
  }
  TORNASOLE_CHECK(content_->make_directory(split_path(to).directory, fmt::format("rename {} to {}", from, to)));
  if (content_->find(to) != nullptr) return taken_error(fmt::format("rename {} to", from), to);

  std::vector<std::string> moved = {std::string(from)};
  for (auto at = content_->first_below(from); at != content_->nodes.end() && is_below(at->first, from); ++at) {
    moved.push_back(at->first);
  }
  for (const std::string& path : moved) {
    auto node = content_->nodes.extract(path);
    node.key() = fmt::format("{}{}", to, path.substr(from.size()));
    content_->nodes.insert(std::move(node));
  }
  return {};
}

Result<double> MemoryStore::now_s() {
  const std::lock_guard lock(content_->mutex);
  return content_->now();
}

}  // namespace tornasole::store
