#pragma once

// A file of a store with a spool: collected in memory, above 16 MiB on the spool's disk, and sent when it is published.

#include <memory>
#include <string>

#include "store/spool/spool.h"
#include "store/store.h"

namespace tornasole::store {

class SpoolPendingFile final : public PendingFile {
 public:
  // The spool is shared: the file may outlive its store.
  SpoolPendingFile(std::shared_ptr<Spool> spool, std::string path) : spool_(std::move(spool)), path_(std::move(path)) {}
  ~SpoolPendingFile() override { abandon(); }

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override;
  Status sync() override;
  Status publish(bool replace) override;
  Result<Bytes> read_back(std::uint64_t offset, std::uint64_t length) override;
  void abandon() noexcept override;
  std::uint64_t size_bytes() const noexcept override { return size_bytes_; }
  std::string version() const override { return version_; }

 private:
  enum class State { kOpen, kBroken, kClosed, kDone };
  Status check_open(const char* action) const;
  // Moves what is in memory to the disk, where everything further goes.
  Status spill();
  Status append_to_disk(ByteView bytes);
  Status send(bool replace);
  Status keep(bool replace);

  const std::shared_ptr<Spool> spool_;
  const std::string path_;
  State state_ = State::kOpen;
  Bytes buffer_;                          // while it is small
  std::unique_ptr<PendingFile> on_disk_;  // once it is not
  bool is_data_published_ = false;        // on the disk, under its number
  std::int64_t number_ = 0;               // of the action, once it has data on the disk
  std::uint64_t reserved_bytes_ = 0;
  std::uint32_t crc_ = 0;
  std::uint64_t size_bytes_ = 0;
  bool is_durable_ = false;
  std::string version_;  // once published, unless it waits on the disk
};

}  // namespace tornasole::store
