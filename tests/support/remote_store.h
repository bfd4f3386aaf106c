#pragma once

// A store as if it were across a network: each content has a version, and what is asked for is counted.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "support/forwarding_store.h"

namespace tornasole::store {

inline std::string version_of(ByteView content) { return fmt::format("v{:08x}", crc32c(content)); }

// Shared by stores on the same content.
struct RemoteRequests {
  std::mutex mutex;
  std::map<std::string, int> reads;  // by path
  std::vector<std::string> lists;    // directories, in order

  int reads_below(std::string_view directory) {
    const std::lock_guard lock(mutex);
    int count = 0;
    for (const auto& [path, times] : reads) count += path.starts_with(directory) ? times : 0;
    return count;
  }
};

class RemoteFile final : public ForwardingFile {
 public:
  explicit RemoteFile(std::unique_ptr<PendingFile> base) : ForwardingFile(std::move(base)) {}
  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override {
    for (const ByteView piece : pieces) content_.append(piece);
    return ForwardingFile::append(pieces);
  }
  std::string version() const override { return version_of(content_); }

 private:
  Bytes content_;
};

class RemoteStore final : public ForwardingStore {
 public:
  // The requests outlive the store.
  RemoteStore(std::unique_ptr<Store> base, RemoteRequests* requests)
      : ForwardingStore(std::move(base)), requests_(*requests) {}

  Capabilities capabilities() const noexcept override {
    Capabilities capabilities = ForwardingStore::capabilities();
    capabilities.is_remote = true;
    return capabilities;
  }
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override {
    auto file = ForwardingStore::create(path);
    if (!file.ok()) return file;
    return std::unique_ptr<PendingFile>(std::make_unique<RemoteFile>(std::move(*file)));
  }
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override {
    {
      const std::lock_guard lock(requests_.mutex);
      requests_.lists.emplace_back(directory);
    }
    auto entries = ForwardingStore::list(directory, recursive);
    if (!entries.ok()) return entries;
    for (Entry& entry : *entries) {
      if (entry.status.is_directory) continue;
      const auto content = base().read_all(entry.path, kMaxReadBytes);
      if (content.ok()) entry.status.version = version_of(*content);
    }
    return entries;
  }
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override {
    count(path);
    return ForwardingStore::read(path, offset, length);
  }
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override {
    count(path);
    return ForwardingStore::read_all(path, limit);
  }

 private:
  void count(std::string_view path) {
    const std::lock_guard lock(requests_.mutex);
    ++requests_.reads[std::string(path)];
  }

  RemoteRequests& requests_;
};

}  // namespace tornasole::store
