#include "tools/part_store.h"

#include "base/errors.h"

namespace tornasole::tools {

PartStore::PartStore(store::Store* whole, std::string_view directory)
    : whole_(*whole), prefix_(std::string(directory) + "/") {}

std::string PartStore::description() const {
  return whole_.description() + "/" + prefix_.substr(0, prefix_.size() - 1);
}

Result<std::string> PartStore::place(std::string_view path) const {
  if (path.empty()) return prefix_.substr(0, prefix_.size() - 1);
  TORNASOLE_CHECK(store::check_path(path));
  return prefix_ + std::string(path);
}

Result<std::unique_ptr<store::PendingFile>> PartStore::create(std::string_view path) {
  TORNASOLE_TRY(const std::string placed, place(path));
  return whole_.create(placed);
}

Status PartStore::create_exclusive(std::string_view path, ByteView content) {
  TORNASOLE_TRY(const std::string placed, place(path));
  return whole_.create_exclusive(placed, content);
}

Status PartStore::sync_directory(std::string_view directory) {
  TORNASOLE_TRY(const std::string placed, place(directory));
  return whole_.sync_directory(placed);
}

Result<store::FileStatus> PartStore::status(std::string_view path) {
  TORNASOLE_TRY(const std::string placed, place(path));
  return whole_.status(placed);
}

Result<std::vector<store::Entry>> PartStore::list(std::string_view directory, bool recursive) {
  TORNASOLE_TRY(const std::string placed, place(directory));
  TORNASOLE_TRY(auto entries, whole_.list(placed, recursive));
  for (store::Entry& entry : entries) entry.path.erase(0, prefix_.size());
  return entries;
}

Result<Bytes> PartStore::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  TORNASOLE_TRY(const std::string placed, place(path));
  return whole_.read(placed, offset, length);
}

Result<Bytes> PartStore::read_all(std::string_view path, std::uint64_t limit) {
  TORNASOLE_TRY(const std::string placed, place(path));
  return whole_.read_all(placed, limit);
}

Status PartStore::remove(std::string_view path) {
  TORNASOLE_TRY(const std::string placed, place(path));
  return whole_.remove(placed);
}

Status PartStore::rename(std::string_view from, std::string_view to) {
  TORNASOLE_TRY(const std::string source, place(from));
  TORNASOLE_TRY(const std::string target, place(to));
  return whole_.rename(source, target);
}

}  // namespace tornasole::tools
