#pragma once

// The store on S3 and services that speak its language: `s3://bucket/prefix`. A file is an object; it is collected in
// memory, or above 16 MiB sent in parts, and appears when it is published. There are no directories: a name that other
// names begin with, and a slash, counts as one. Nothing can be renamed, and buckets are never created.

#include <memory>
#include <string>

#include "store/s3/s3_client.h"
#include "store/store.h"

namespace tornasole::store {

struct S3StoreOptions {
  // Every call that would write is kUnsupported.
  bool read_only = false;
  // Of one request, retries included: an uploader has patience, a reader has a person waiting.
  double retry_budget_s = 600;
  s3::S3Environment environment = {};
  s3::S3ClientDependencies dependencies = {};
};

// Speaks to nobody yet. kInvalid for an address, endpoint or region that cannot be, kUnsupported without libcurl.
//
// Variables besides those of AWS: TORNASOLE_S3_ADDRESSING (auto, path, virtual), TORNASOLE_S3_ALLOW_HTTP (1: plain HTTP
// to any host), TORNASOLE_S3_IDLE_S (seconds without a byte after which a try is given up, 30).
Result<std::unique_ptr<Store>> open_s3_store(const std::string& location, S3StoreOptions options);

// The same without a store on it: signed requests to the bucket.
Result<std::shared_ptr<s3::S3Client>> open_s3_client(const std::string& location, S3StoreOptions options);

inline bool is_s3_location(std::string_view location) { return location.starts_with("s3://"); }

}  // namespace tornasole::store
