#include "store/store_path.h"

#include <cstring>
#include <utility>

#include "base/errors.h"
#include "store/store.h"

namespace tornasole::store {
namespace {

constexpr std::size_t kMaxPathBytes = 4095;

Status check_component(std::string_view component, std::string_view path) {
  if (component.empty()) {
    return invalid_error("path '{}' has an empty component: paths are relative, names joined by single '/'", path);
  }
  if (component == "." || component == "..") {
    return invalid_error("path '{}' contains '{}': only names below the root are allowed", path, component);
  }
  if (component.size() > kMaxComponentBytes) {
    return invalid_error("path '{}' has a component of {} bytes: at most {} are allowed", path, component.size(),
                         kMaxComponentBytes);
  }
  return {};
}

}  // namespace

Result<Bytes> PendingFile::read_back(std::uint64_t /*offset*/, std::uint64_t /*length*/) {
  return unsupported_error("this store cannot read a file that is being written");
}

Result<std::size_t> Store::read_into(std::string_view path, std::uint64_t offset, std::span<char> buffer) {
  TORNASOLE_TRY(const Bytes bytes, read(path, offset, buffer.size()));
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return bytes.size();
}

Result<std::vector<Entry>> Store::list_after(std::string_view directory, std::string_view after) {
  TORNASOLE_TRY(std::vector<Entry> entries, list(directory, /*recursive=*/true));
  std::erase_if(entries, [after](const Entry& entry) { return entry.path <= after; });
  return entries;
}

std::map<std::string, std::int64_t> StoreTraffic::by_name() const {
  std::map<std::string, std::int64_t> counts;
  if (requests() == 0) return counts;
  const std::pair<const char*, std::uint64_t> named[] = {
      {"get", gets},        {"put", puts},        {"list", lists},
      {"other", others},    {"retries", retries}, {"bytes_read", bytes_read},
      {"spooled", spooled}, {"waiting", waiting}, {"bytes_written", bytes_written}};
  for (const auto& [name, count] : named) {
    if (count != 0) counts[name] = static_cast<std::int64_t>(count);
  }
  return counts;
}

Status check_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) {
    return invalid_error("path '{}' contains a NUL byte", path.substr(0, path.find('\0')));
  }
  // The length is checked before the path is printed, so that a message stays a message.
  if (path.size() > kMaxPathBytes) {
    return invalid_error("path of {} bytes starting with '{}': at most {} are allowed", path.size(), path.substr(0, 64),
                         kMaxPathBytes);
  }
  std::size_t depth = 0;
  std::size_t start = 0;
  while (true) {
    const std::size_t slash = path.find('/', start);
    TORNASOLE_CHECK(check_component(path.substr(start, slash - start), path));
    if (++depth > kMaxPathDepth) {
      return invalid_error("path '{}' has more than {} components", path, kMaxPathDepth);
    }
    if (slash == std::string_view::npos) return {};
    start = slash + 1;
  }
}

Status check_directory_path(std::string_view path) { return path.empty() ? Status() : check_path(path); }

Status check_new_path(std::string_view path) {
  TORNASOLE_CHECK(check_path(path));
  const std::string_view name = split_path(path).name;
  if (name.size() + kTemporarySuffix.size() > kMaxComponentBytes) {
    return invalid_error("path '{}' has a file name of {} bytes: at most {} are allowed for a file being written", path,
                         name.size(), kMaxComponentBytes - kTemporarySuffix.size());
  }
  return {};
}

SplitPath split_path(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {{}, path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace tornasole::store
