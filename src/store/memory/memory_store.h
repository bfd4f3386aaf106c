#pragma once

// MemoryStore: a trial in memory, for tests and for looking at what was captured without a disk. It behaves as the
// local store does, down to the temporary names; what is written is durable at once.

#include <memory>

#include "base/clock.h"
#include "store/store.h"

namespace tornasole::store {

class MemoryStore final : public Store {
 public:
  // `clock` gives modification times and must outlive the content.
  explicit MemoryStore(const Clock& clock = system_clock());
  ~MemoryStore() override;

  // Another store on the same content, as a second process would open it.
  std::unique_ptr<MemoryStore> share() const;
  // Stops the clock at this time, until it is set again.
  void set_now_s(double now_s);

  std::string description() const override { return "memory"; }
  Capabilities capabilities() const noexcept override { return {}; }
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override;
  Status create_exclusive(std::string_view path, ByteView content) override;
  Status sync_directory(std::string_view directory) override;
  Result<FileStatus> status(std::string_view path) override;
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override;
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override;
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override;
  Status remove(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Result<double> now_s() override;

 private:
  struct Content;
  class File;
  explicit MemoryStore(std::shared_ptr<Content> content);

  // Shared: stores made by share() and files still being written use it as well, and may outlive this store.
  std::shared_ptr<Content> content_;
};

}  // namespace tornasole::store
