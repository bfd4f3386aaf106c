#pragma once

// Store: where a trial lives. Every backend, and every wrapper that injects faults, implements this and passes the
// conformance suite (tests/store/conformance.h).
//
// Paths are relative to the store's root, '/'-separated, no empty component, no "." or "..", no leading '/', no NUL, at
// most 64 components of at most 255 bytes; a bad path is kInvalid before anything is touched. Where a directory is
// asked for, "" is the root. Errors name the path. A store may be used from many threads; one PendingFile only from
// one, and it may outlive its store.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tornasole/result.h"

namespace tornasole::store {

// One read returns at most this much: somewhat more than the largest record.
inline constexpr std::uint64_t kMaxReadBytes = std::uint64_t{1} << 31;

struct FileStatus {
  std::uint64_t size_bytes = 0;
  double modified_s = 0;  // seconds since 1970, by the store's own clock
  bool is_directory = false;
  // What the store calls this very content: other bytes under the path have another one. Empty where it has no such
  // word, or one that is no printable ASCII of at most kMaxVersionBytes.
  std::string version = {};
};
inline constexpr std::size_t kMaxVersionBytes = 128;
struct Entry {
  std::string path;  // relative to the root
  FileStatus status = {};
};

// A file being written under a temporary name. Nobody but `repair` looks at it before publish. Destroying it without
// publishing removes the temporary file.
class PendingFile {
 public:
  virtual ~PendingFile() = default;
  // Appends the pieces in order; when it returns they have left the process, unless they may be kept.
  // After an error the content is unknown: what is left is to abandon, and publish refuses.
  virtual Status append(std::span<const ByteView> pieces) = 0;
  Status append(ByteView piece) { return append(std::span<const ByteView>(&piece, 1)); }
  // Whether append may keep bytes in the process until flush, sync, read_back or publish, where that spares the
  // processor and takes the disk longer. Not unless this was said; what is kept when it no longer may be leaves with
  // the next append.
  virtual void let_keep(bool /*may_keep*/) noexcept {}
  virtual Status flush() { return {}; }
  // Makes the content durable (where the store can).
  virtual Status sync() = 0;
  // Closes the file and gives it its final name in one step. kInvalid if that name is taken and `replace` is false. A
  // publish that failed may be tried again; once it succeeded every further call but abandon is kInvalid.
  virtual Status publish(bool replace) = 0;
  // Up to `length` bytes of what was appended, also when the temporary file was removed from its directory meanwhile;
  // not after publish or abandon. kUnsupported where the store cannot.
  virtual Result<Bytes> read_back(std::uint64_t offset, std::uint64_t length);
  // Removes the temporary file. Not an error if there is none.
  virtual void abandon() noexcept = 0;
  virtual std::uint64_t size_bytes() const noexcept = 0;
  // Once it is published: the version a listing will show, as long as nobody replaces it. Empty if that is not known.
  virtual std::string version() const { return {}; }
};

struct Capabilities {
  bool has_atomic_publish = true;
  bool has_sync = true;
  bool can_rename = true;  // attempts can be moved aside
  bool can_claim = true;   // claims and other small files of processes are worth making: create_exclusive is cheap
  // Directories exist by themselves, and a file being written shows under its temporary name. Where they do not, a
  // directory is a name that others begin with.
  bool has_directories = true;
  // Each call is a request over the network: few long ones beat many short ones, and several at once one by one.
  bool is_remote = false;
};

// Requests a remote store has sent, retries included; all zero where there are none.
struct StoreTraffic {
  std::uint64_t gets = 0, puts = 0, lists = 0, others = 0, retries = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t spooled = 0;  // files and removals that had to wait on a local disk
  std::uint64_t waiting = 0;  // of those, still there
  std::uint64_t requests() const noexcept { return gets + puts + lists + others; }
  // For reports: what is not zero, by name; nothing if there were no requests.
  std::map<std::string, std::int64_t> by_name() const;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual std::string description() const = 0;  // for messages: the directory or address
  virtual Capabilities capabilities() const noexcept = 0;

  // Creates directories as needed, then the temporary file <path>.tmp exclusively; something already at that name is
  // kIo and is left alone.
  virtual Result<std::unique_ptr<PendingFile>> create(std::string_view path) = 0;
  // A small file with this content under its final name, created exclusively: kInvalid if it is there already.
  virtual Status create_exclusive(std::string_view path, ByteView content) = 0;
  // Makes the entries of published files in this directory durable, and the directory itself.
  virtual Status sync_directory(std::string_view directory) = 0;

  // A file, a directory or "" for the root. kNotFound if there is none, kCorrupt if it is anything else.
  virtual Result<FileStatus> status(std::string_view path) = 0;
  // Entries directly below a directory, or all files below it; sorted by path as byte strings. A directory that does
  // not exist is empty. Temporary files (*.tmp) are listed: who wants none leaves them out. Links and special files are
  // listed with size 0 and never followed; nothing below the 64th level is.
  virtual Result<std::vector<Entry>> list(std::string_view directory, bool recursive) = 0;
  // All files below a directory whose path sorts after `after`; "" is before all of them.
  virtual Result<std::vector<Entry>> list_after(std::string_view directory, std::string_view after);
  // Bytes [offset, offset + length) of a regular file; fewer only if the file ends. Links, pipes, devices and
  // directories are kCorrupt. `length` is bounded by the file's size before anything is allocated; kInvalid if more
  // than kMaxReadBytes would be.
  virtual Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) = 0;
  // The same into memory of the caller, for who reads much and keeps little of it. Returns how many bytes there were.
  virtual Result<std::size_t> read_into(std::string_view path, std::uint64_t offset, std::span<char> buffer);
  // The whole file if it is at most `limit` bytes, else kCorrupt.
  virtual Result<Bytes> read_all(std::string_view path, std::uint64_t limit) = 0;

  // A file or an empty directory; kNotFound if there is none.
  virtual Status remove(std::string_view path) = 0;
  // Within the store; the directories of `to` are created. kInvalid if `to` exists.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  // "Now" by the store's clock: the modification time of a file made for the purpose and removed again.
  virtual Result<double> now_s() = 0;
  // True if the root was removed while this store held it, which every other call reports as kIo. The store lets go of
  // it: the next call looks for what is at its path now, and one that writes makes it again. Files that are being
  // written stay where they were.
  virtual bool renew_root() { return false; }
  // Waits until everything accepted so far is where it belongs; kIo says what is left if `cancel` ended the wait.
  virtual Status settle() { return {}; }
  // Calls that wait for something outside the process, now and from now on, fail soon with kIo.
  virtual void cancel() noexcept {}
  virtual StoreTraffic traffic() const noexcept { return {}; }
};

// kInvalid unless the path is as this header says.
Status check_path(std::string_view path);

// What a directory is asked for with: a path, or "" for the root.
Status check_directory_path(std::string_view path);

}  // namespace tornasole::store
