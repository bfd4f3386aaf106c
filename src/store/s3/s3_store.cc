#include "store/s3/s3_store.h"

#include <algorithm>
#include <charconv>

#include "base/errors.h"
#include "store/s3/s3_objects.h"
#include "store/s3/s3_pending_file.h"
#include "store/store_path.h"

namespace tornasole::store {
namespace {

using s3::IfThere;
using s3::S3Client;

FileStatus status_of(const s3::ListedObject& object) {
  return {.size_bytes = object.size_bytes, .modified_s = object.modified_s, .version = object.etag};
}

class S3Store final : public Store {
 public:
  S3Store(std::shared_ptr<S3Client> client, bool read_only)
      : client_(std::move(client)),
        root_(client_->address().prefix.empty() ? std::string() : client_->address().prefix + '/'),
        read_only_(read_only) {}

  std::string description() const override { return client_->describe(client_->address().prefix); }
  Capabilities capabilities() const noexcept override {
    return {.can_rename = false, .can_claim = false, .has_directories = false, .is_remote = true};
  }
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
  void cancel() noexcept override { client_->cancel(); }
  StoreTraffic traffic() const noexcept override;

 private:
  std::string key_of(std::string_view path) const { return root_ + std::string(path); }
  std::string prefix_of(std::string_view directory) const {
    return directory.empty() ? root_ : key_of(directory) + '/';
  }
  Status check_writable(std::string_view action, std::string_view path) const;
  Result<std::vector<Entry>> list_files(std::string_view directory, std::string start_after);
  // What a key is called in here; nothing for one that is no path (somebody else's, or a mark of a directory).
  std::optional<std::string> path_of(std::string_view key) const;

  // constant
  const std::shared_ptr<S3Client> client_;  // shared with files that are being written
  const std::string root_;                  // "" or "prefix/"
  const bool read_only_;
};

StoreTraffic S3Store::traffic() const noexcept {
  const s3::S3Counts counts = client_->counts();
  return {counts.get, counts.put, counts.list, counts.other, counts.retries, counts.bytes_read, counts.bytes_written};
}

Status S3Store::check_writable(std::string_view action, std::string_view path) const {
  if (!read_only_) return {};
  return unsupported_error("{} {}: {} was opened for reading only", action, path, description());
}

std::optional<std::string> S3Store::path_of(std::string_view key) const {
  if (!key.starts_with(root_)) return std::nullopt;
  std::string path(key.substr(root_.size()));
  if (!check_path(path).ok()) return std::nullopt;
  return path;
}

Result<std::unique_ptr<PendingFile>> S3Store::create(std::string_view path) {
  TORNASOLE_CHECK(check_new_path(path));
  TORNASOLE_CHECK(check_writable("create", path));
  return std::unique_ptr<PendingFile>(std::make_unique<s3::S3PendingFile>(client_, key_of(path)));
}

Status S3Store::create_exclusive(std::string_view path, ByteView content) {
  TORNASOLE_CHECK(check_new_path(path));
  TORNASOLE_CHECK(check_writable("create", path));
  TORNASOLE_CHECK(s3::put_object(*client_, key_of(path), content, IfThere::kRefuse));
  return {};
}

// An object that was accepted is durable; there is nothing to do.
Status S3Store::sync_directory(std::string_view directory) {
  TORNASOLE_CHECK(check_directory_path(directory));
  return check_writable("sync directory", directory);
}

// One listing tells a file from a directory from nothing.
Result<FileStatus> S3Store::status(std::string_view path) {
  TORNASOLE_CHECK(check_directory_path(path));
  const std::string key = path.empty() ? root_ : key_of(path);
  constexpr std::size_t kPage = 100;
  TORNASOLE_TRY(const auto listed,
                s3::list_keys(*client_, {.prefix = key, .delimiter = path.empty() ? "" : "/", .max_keys = kPage}));
  if (path.empty()) {
    if (listed.objects.empty()) return not_found_error("look at {}: no such object or prefix", description());
    return FileStatus{.size_bytes = 0, .modified_s = listed.objects.front().modified_s, .is_directory = true};
  }
  if (!listed.objects.empty() && listed.objects.front().key == key) {
    return status_of(listed.objects.front());
  }
  const std::string below = key + '/';
  bool is_directory = std::ranges::find(listed.prefixes, below) != listed.prefixes.end();
  if (!is_directory && listed.objects.size() + listed.prefixes.size() >= kPage) {
    // Names like it filled the page before its own slash was reached.
    TORNASOLE_TRY(const auto inside, s3::list_keys(*client_, {.prefix = below, .max_keys = 1}));
    is_directory = !inside.objects.empty();
  }
  if (is_directory) return FileStatus{.is_directory = true};
  return not_found_error("look at {}: no such object or prefix", client_->describe(key));
}

Result<std::vector<Entry>> S3Store::list_files(std::string_view directory, std::string start_after) {
  TORNASOLE_CHECK(check_directory_path(directory));
  TORNASOLE_TRY(auto listed,
                s3::list_keys(*client_, {.prefix = prefix_of(directory), .start_after = std::move(start_after)}));
  std::vector<Entry> entries;
  entries.reserve(listed.objects.size());
  for (const s3::ListedObject& object : listed.objects) {
    if (auto path = path_of(object.key)) {
      entries.push_back({std::move(*path), status_of(object)});
    }
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

Result<std::vector<Entry>> S3Store::list(std::string_view directory, bool recursive) {
  if (recursive) return list_files(directory, "");
  TORNASOLE_CHECK(check_directory_path(directory));
  TORNASOLE_TRY(auto listed, s3::list_keys(*client_, {.prefix = prefix_of(directory), .delimiter = "/"}));
  std::vector<Entry> entries;
  for (const s3::ListedObject& object : listed.objects) {
    if (auto path = path_of(object.key)) {
      entries.push_back({std::move(*path), status_of(object)});
    }
  }
  for (std::string& prefix : listed.prefixes) {
    if (prefix.ends_with('/')) prefix.pop_back();
    if (auto path = path_of(prefix)) entries.push_back({std::move(*path), {.is_directory = true}});
  }
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

Result<std::vector<Entry>> S3Store::list_after(std::string_view directory, std::string_view after) {
  return list_files(directory, after.empty() ? std::string() : key_of(after));
}

Result<Bytes> S3Store::read(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  TORNASOLE_CHECK(check_path(path));
  TORNASOLE_TRY(auto object, s3::get_object(*client_, key_of(path), offset, length));
  return std::move(object.bytes);
}

Result<Bytes> S3Store::read_all(std::string_view path, std::uint64_t limit) {
  TORNASOLE_CHECK(check_path(path));
  TORNASOLE_TRY(auto object, s3::get_whole_object(*client_, key_of(path), limit));
  return std::move(object.bytes);
}

Status S3Store::remove(std::string_view path) {
  TORNASOLE_CHECK(check_path(path));
  TORNASOLE_CHECK(check_writable("remove", path));
  const auto there = status(path);
  if (!there.ok()) return there.error();
  if (there->is_directory) {
    return io_error("remove {}: a prefix with objects below it, not an object", client_->describe(key_of(path)));
  }
  return s3::delete_object(*client_, key_of(path));
}

Status S3Store::rename(std::string_view from, std::string_view to) {
  TORNASOLE_CHECK(check_path(from));
  TORNASOLE_CHECK(check_path(to));
  return unsupported_error("rename {} to {}: objects cannot be renamed", client_->describe(key_of(from)), to);
}

Result<double> S3Store::now_s() {
  TORNASOLE_TRY(const auto listed, s3::list_keys(*client_, {.prefix = root_, .max_keys = 1}));
  if (!listed.now_s) return io_error("{}: the service does not say what time it is", description());
  return *listed.now_s;
}

}  // namespace

Result<std::shared_ptr<s3::S3Client>> open_s3_client(const std::string& location, S3StoreOptions options) {
  TORNASOLE_TRY(s3::Address address, s3::parse_address(location));
  const s3::S3Environment& environment = options.environment;
  s3::S3ClientSettings settings{.address = std::move(address),
                                .endpoint = {.url = s3::find_endpoint_url(environment),
                                             .region = s3::find_region(environment).value_or("us-east-1"),
                                             .addressing = environment.get("TORNASOLE_S3_ADDRESSING").value_or("auto"),
                                             .allow_http = environment.get("TORNASOLE_S3_ALLOW_HTTP") == "1"},
                                .limits = {.budget_s = options.retry_budget_s}};
  if (const auto idle = environment.get("TORNASOLE_S3_IDLE_S")) {
    double seconds = 0;
    const auto parsed = std::from_chars(idle->data(), idle->data() + idle->size(), seconds);
    if (parsed.ec != std::errc() || parsed.ptr != idle->data() + idle->size() || !(seconds >= 1 && seconds <= 3600)) {
      return invalid_error("TORNASOLE_S3_IDLE_S: '{}' is not allowed; allowed: 1 to 3600 seconds", *idle);
    }
    settings.idle_timeout_s = seconds;
  }
  settings.environment = std::move(options.environment);
  auto client = S3Client::make(std::move(settings), std::move(options.dependencies));
  if (!client.ok()) {
    Error error = std::move(client).error();
    error.message = location + ": " + error.message;
    return error;
  }
  return client;
}

Result<std::unique_ptr<Store>> open_s3_store(const std::string& location, S3StoreOptions options) {
  const bool read_only = options.read_only;
  TORNASOLE_TRY(auto client, open_s3_client(location, std::move(options)));
  return std::unique_ptr<Store>(std::make_unique<S3Store>(std::move(client), read_only));
}

}  // namespace tornasole::store
