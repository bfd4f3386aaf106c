#pragma once

// PartStore: a directory of a store as a store of its own, so that attempts/<n>/ is looked at as the trial it is. It
// goes through the same handle, hence leads nowhere the whole store would not.

#include <memory>
#include <string>
#include <vector>

#include "store/store.h"

namespace tornasole::tools {

class PartStore final : public store::Store {
 public:
  // `whole` must outlive this.
  PartStore(store::Store* whole, std::string_view directory);

  std::string description() const override;
  store::Capabilities capabilities() const noexcept override { return whole_.capabilities(); }
  Result<std::unique_ptr<store::PendingFile>> create(std::string_view path) override;
  Status create_exclusive(std::string_view path, ByteView content) override;
  Status sync_directory(std::string_view directory) override;
  Result<store::FileStatus> status(std::string_view path) override;
  Result<std::vector<store::Entry>> list(std::string_view directory, bool recursive) override;
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override;
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override;
  Status remove(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override;
  Result<double> now_s() override { return whole_.now_s(); }

 private:
  // A path that the whole store would understand otherwise than this one is refused first.
  Result<std::string> place(std::string_view path) const;

  store::Store& whole_;
  const std::string prefix_;  // ends in '/'
};

}  // namespace tornasole::tools
