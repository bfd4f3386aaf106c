#pragma once

// LocalPendingFile: a file being written in a local directory.
//
//   1. adopt: the store created <name>.tmp exclusively and hands over its descriptor and that of its directory.
//   2. append: writev in bounded pieces, room for large ones taken before; where bytes may be kept, a large file goes
//      past the page cache. The first failure marks the content as unknown.
//   3. publish: close, whose errors count, then rename within the directory. If the temporary file is gone the content
//      can still be read back.
//   4. abandon, or destruction before 3 succeeded: the temporary name is unlinked.

#include <sys/types.h>

#include <memory>
#include <string>

#include "store/local/beneath.h"
#include "store/local/block_reserve.h"
#include "store/local/direct_writer.h"
#include "store/store.h"

namespace tornasole::store {

class LocalPendingFile final : public PendingFile {
 public:
  struct Names {
    std::string name;         // final, in the directory
    std::string temporary;    // the name it has until then
    std::string description;  // the whole final path, for messages
  };
  // Made before the file is, so that nothing can fail between the two and leave a file that nobody removes.
  LocalPendingFile(Names names, const SystemCalls& calls, std::shared_ptr<DirectMemory> direct) noexcept;
  void adopt(FileHandle directory, FileHandle file) noexcept;
  ~LocalPendingFile() override { abandon(); }

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override;
  void let_keep(bool may_keep) noexcept override { may_keep_ = may_keep; }
  Status flush() override;
  Status sync() override;
  Status publish(bool replace) override;
  Result<Bytes> read_back(std::uint64_t offset, std::uint64_t length) override;
  void abandon() noexcept override;
  std::uint64_t size_bytes() const noexcept override { return size_bytes_; }

 private:
  // What every call but abandon needs: not published, not abandoned, content known.
  Status check_usable(const char* call) const;
  Status check_open(const char* call) const;
  Status mark_damaged(const char* call, int error);
  // Whether the bytes that are to be appended go past the page cache.
  bool is_direct(std::uint64_t bytes) noexcept;
  int write_out() noexcept;

  const Names names_;
  const SystemCalls calls_;
  const pid_t owner_;
  FileHandle directory_;  // open until published or abandoned
  FileHandle file_;       // open until publish
  BlockReserve reserve_;
  DirectWriter direct_;
  std::uint64_t size_bytes_ = 0;
  bool may_keep_ = false;
  bool is_direct_refused_ = false;
  bool is_damaged_ = false;
};

}  // namespace tornasole::store
