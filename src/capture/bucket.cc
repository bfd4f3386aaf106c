#include "tornasole/bucket.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "config/environment.h"
#include "store/open_store.h"
#include "store/s3/s3_objects.h"
#include "store/s3/s3_pending_file.h"
#include "store/store.h"

namespace tornasole {
namespace {

constexpr double kBudget_s = 30;
constexpr std::size_t kMaxThreads = 16;

}  // namespace

struct Bucket::State {
  std::shared_ptr<store::s3::S3Client> client;  // shared: that is how clients are made
};

Bucket::Bucket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bucket::Bucket(Bucket&&) noexcept = default;
Bucket& Bucket::operator=(Bucket&&) noexcept = default;
Bucket::~Bucket() = default;

Result<Bucket> Bucket::open(const std::string& name) {
  TORNASOLE_TRY(auto client,
                store::open_s3_client("s3://" + name,
                                      {.retry_budget_s = kBudget_s,
                                       .environment = store::s3_environment(config::Environment::from_process())}));
  return Bucket(std::make_unique<State>(State{std::move(client)}));
}

Result<std::vector<std::string>> Bucket::list(const ListOptions& options) {
  TORNASOLE_TRY(auto listed, store::s3::list_keys(*state_->client, {.prefix = options.prefix,
                                                                    .delimiter = options.delimiter,
                                                                    .start_after = options.start_after}));
  std::vector<std::string> keys = std::move(listed.prefixes);
  std::ranges::sort(keys);
  const auto first_key = static_cast<std::ptrdiff_t>(keys.size());
  for (store::s3::ListedObject& object : listed.objects) keys.push_back(std::move(object.key));
  std::sort(keys.begin() + first_key, keys.end());
  return keys;
}

Result<std::string> Bucket::read(const std::string& key, std::uint64_t offset, std::optional<std::uint64_t> length) {
  if (offset == 0 && !length) {
    TORNASOLE_TRY(auto whole, store::s3::get_whole_object(*state_->client, key, store::kMaxReadBytes));
    return std::move(whole.bytes);
  }
  TORNASOLE_TRY(auto part, store::s3::get_object(*state_->client, key, offset, length.value_or(store::kMaxReadBytes)));
  return std::move(part.bytes);
}

std::vector<Result<std::string>> Bucket::read_many(const std::vector<ReadRequest>& requests) {
  std::vector<Result<std::string>> answers(requests.size(), Result<std::string>(Error{}));
  std::atomic<std::size_t> next = 0;
  const auto work = [&]() noexcept {
    for (std::size_t at = next++; at < requests.size(); at = next++) {
      try {
        answers[at] = read(requests[at].key, requests[at].offset, requests[at].length);
      } catch (...) {
        answers[at] = error_from_current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(kMaxThreads, requests.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return answers;
}

Status Bucket::write(const std::string& key, std::string_view content) {
  store::s3::S3PendingFile file(state_->client, key);
  TORNASOLE_CHECK(file.append(content));
  return file.publish(/*replace=*/true);
}

Result<std::int64_t> Bucket::remove_below(const std::string& prefix) {
  if (prefix.empty()) return invalid_error("the prefix is empty, which would remove everything in the bucket");
  TORNASOLE_TRY(const auto listed, store::s3::list_keys(*state_->client, {.prefix = prefix}));
  for (const store::s3::ListedObject& object : listed.objects) {
    TORNASOLE_CHECK(store::s3::delete_object(*state_->client, object.key));
  }
  return static_cast<std::int64_t>(listed.objects.size());
}

}  // namespace tornasole
