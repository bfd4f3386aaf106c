#pragma once

// CrashStore: a store that can lose power. All is kept in memory, as an operating system keeps it in its caches; at the
// crash the base store gets one of the states that a disk may be left in (crash_journal.h), chosen by the seed. Every
// later call is kIo.
//
// The base is read when the store is opened and written at the crash alone, so another process sees nothing before.

#include <cstdint>
#include <memory>

#include "store/store.h"

namespace tornasole::store {

struct CrashOptions {
  std::uint64_t seed = 0;
  std::int64_t crash_at_call = 0;    // the n-th call that writes finds the power gone; 0: none does
  bool crash_when_destroyed = true;  // else the base gets everything
};

class CrashStore final : public Store {
 public:
  static Result<std::unique_ptr<CrashStore>> open(std::unique_ptr<Store> base, CrashOptions options);
  ~CrashStore() override;
  CrashStore(const CrashStore&) = delete;
  CrashStore& operator=(const CrashStore&) = delete;

  // An error is one of the base store. A second crash changes nothing.
  Status crash();
  bool has_crashed() const;
  // Calls that write, so far.
  std::int64_t write_calls() const;
  // What a process finds that starts after the crash. Owned by this store.
  Store& base() noexcept;

  std::string description() const override;
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
  struct Machine;
  class File;
  explicit CrashStore(std::shared_ptr<Machine> machine);

  // Shared: files being written use it, and may outlive the store.
  std::shared_ptr<Machine> machine_;
};

}  // namespace tornasole::store
