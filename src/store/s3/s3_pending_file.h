#pragma once

// A file that becomes an object when it is published.

#include <memory>
#include <optional>
#include <string>

#include "store/s3/s3_objects.h"
#include "store/store.h"

namespace tornasole::store::s3 {

class S3PendingFile final : public PendingFile {
 public:
  // The client is shared: the file may outlive its store.
  S3PendingFile(std::shared_ptr<S3Client> client, std::string key) : client_(std::move(client)), key_(std::move(key)) {}
  ~S3PendingFile() override { abandon(); }

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override;
  Status sync() override;
  Status publish(bool replace) override;
  Result<Bytes> read_back(std::uint64_t offset, std::uint64_t length) override;
  void abandon() noexcept override;
  std::uint64_t size_bytes() const noexcept override { return size_bytes_; }
  std::string version() const override { return version_; }

 private:
  enum class State { kOpen, kBroken, kClosed, kDone };
  Status check_open(const char* action) const;
  Status send_part(ByteView bytes);

  const std::shared_ptr<S3Client> client_;
  const std::string key_;
  State state_ = State::kOpen;
  Bytes buffer_;  // what was not sent yet
  std::optional<MultipartUpload> upload_;
  std::uint64_t size_bytes_ = 0;
  std::string version_;  // once published, unless it went up in parts
};

}  // namespace tornasole::store::s3
