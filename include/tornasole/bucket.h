#pragma once

// Bucket: the objects of an S3 bucket by their keys, for programs that look at the files of a run themselves.
//
//   auto bucket = tornasole::Bucket::open("my-bucket");
//   if (!bucket) return fail(bucket.error());
//   auto keys = bucket->list({.prefix = "runs/"});
//
// Credentials, region and endpoint are those of the process, as for every s3:// path (docs/s3.md). Buckets are never
// created. May be used from several threads at once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/result.h"

namespace tornasole {

class TORNASOLE_EXPORT Bucket {
 public:
  // Speaks to nobody yet. kInvalid for a name that cannot be a bucket's, kUnsupported without libcurl.
  static Result<Bucket> open(const std::string& name);
  Bucket(Bucket&&) noexcept;
  Bucket& operator=(Bucket&&) noexcept;
  ~Bucket();

  struct ListOptions {
    std::string prefix = {};       // of the keys, as text: "runs/a" also finds runs/ab
    std::string delimiter = {};    // keys that have it behind the prefix count once, up to it
    std::string start_after = {};  // only keys that sort after this one
  };
  // Sorted as byte strings: first what the delimiter cut, then whole keys.
  Result<std::vector<std::string>> list(const ListOptions& options);
  // Up to `length` bytes from `offset` on, or all of them. kNotFound if there is no such object.
  Result<std::string> read(const std::string& key, std::uint64_t offset = 0, std::optional<std::uint64_t> length = {});
  // Several at a time, in the order they were asked for; each a value or an error of its own.
  struct ReadRequest {
    std::string key = {};
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length = {};
  };
  std::vector<Result<std::string>> read_many(const std::vector<ReadRequest>& requests);
  // Replaces what is there.
  Status write(const std::string& key, std::string_view content);
  // Every key with the prefix, which must not be empty; how many there were.
  Result<std::int64_t> remove_below(const std::string& prefix);

 private:
  struct State;
  explicit Bucket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tornasole
