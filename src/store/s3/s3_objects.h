#pragma once

// The calls of S3 that a store is made of, as functions of a client. Keys are whole.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/s3/s3_client.h"

namespace tornasole::store::s3 {

// Above this a body goes up in parts.
inline constexpr std::uint64_t kMultipartBytes = std::uint64_t{16} << 20U;
inline constexpr std::uint64_t kPartBytes = std::uint64_t{8} << 20U;

struct ListOptions {
  std::string prefix;
  std::string delimiter = {};
  std::string start_after = {};
  std::size_t max_keys = 0;  // 0: all, page by page
};
struct ListedKeys {
  std::vector<ListedObject> objects = {};
  std::vector<std::string> prefixes = {};
  std::optional<double> now_s = {};  // by the service's clock
};
Result<ListedKeys> list_keys(S3Client& client, const ListOptions& options);

struct ObjectBytes {
  Bytes bytes;
  std::uint64_t object_bytes = 0;  // of the whole object
};
// At most `length` bytes from `offset`; none behind the end.
Result<ObjectBytes> get_object(S3Client& client, const std::string& key, std::uint64_t offset, std::uint64_t length);

// The whole, compared with its checksum if it has one; kCorrupt if it is longer than `limit`.
Result<ObjectBytes> get_whole_object(S3Client& client, const std::string& key, std::uint64_t limit);

enum class IfThere {
  kReplace,
  kRefuse,        // kInvalid
  kAcceptIfSame,  // success if it has these very bytes, else kInvalid
};
// The object's entity tag; empty if the service did not say it.
Result<std::string> put_object(S3Client& client, const std::string& key, ByteView body, IfThere if_there);
Status delete_object(S3Client& client, const std::string& key);

// An upload in parts. Abort what is not completed: its parts are paid for.
class MultipartUpload {
 public:
  static Result<MultipartUpload> start(S3Client& client, std::string key);
  Status add_part(S3Client& client, ByteView bytes);
  Status complete(S3Client& client, IfThere if_there);
  void abort(S3Client& client) noexcept;
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  struct Part {
    std::string etag;
    std::uint32_t crc = 0;
  };
  std::string key_;
  std::string id_;
  std::vector<Part> parts_ = {};
  std::uint64_t size_bytes_ = 0;
};

// The header form: big-endian bytes in base64.
std::string checksum_text(std::uint32_t crc);

}  // namespace tornasole::store::s3
