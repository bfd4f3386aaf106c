#pragma once

// Opens the store that a location names: `s3://bucket/prefix`, or an absolute directory.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/s3/s3_store.h"
#include "store/spool/spool.h"
#include "store/store.h"

namespace tornasole::store {

struct OpenStoreOptions {
  bool read_only = false;
  bool shared = false;  // of a directory
  // Of s3://; see s3_environment.
  s3::S3Environment environment = {};
  // Of s3://: how long one request may take, retries included; unset: as long as its kind of user has patience.
  std::optional<double> retry_budget_s = {};
  // Of s3://, if its directory is not empty: what the service does not take within seconds waits there.
  SpoolOptions spool = {};
};
Result<std::unique_ptr<Store>> open_store(const std::string& location, OpenStoreOptions options);

// What the store may ask of an environment, whatever its type: get_nonempty and read_file are used.
template <typename Environment>
s3::S3Environment s3_environment(Environment environment) {
  // Shared: both functions look into the same copy.
  const auto kept = std::make_shared<const Environment>(std::move(environment));
  return {
      .variable = [kept](std::string_view name) { return kept->get_nonempty(name); },
      .read_file = [kept](const std::string& path, std::size_t max_bytes) { return kept->read_file(path, max_bytes); }};
}

}  // namespace tornasole::store
