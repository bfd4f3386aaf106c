#pragma once

// CrashJournal: what a disk may hold after a power loss, given what was written, renamed and synced before.
//
//   1. A file's bytes are safe up to where they ended at its last sync. Behind that a crash leaves any length, with any
//      sectors of it still zero.
//   2. A change of names is atomic, and safe once its directory was synced. Of the others any part survives, in any
//      order, but for one rule: whoever came to use a name saw it given up first, so the giving up survives with it.
//
// Plain values: no store, no disk, no thread.

#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tornasole::store {

class CrashJournal {
 public:
  using FileId = std::size_t;
  using Disk = std::map<std::string, Bytes, std::less<>>;

  // `disk` is safe already.
  explicit CrashJournal(const Disk& disk);

  FileId create(std::string_view path);
  void append(FileId file, std::span<const ByteView> pieces);
  void sync(FileId file);
  // A file, or all files below a directory; replaces a file at the new name.
  void rename(std::string_view from, std::string_view to);
  void remove(std::string_view path);
  void sync_directory(std::string_view directory);

  // One of the disks that the rules allow.
  Disk crash(std::mt19937_64& random) const;
  // The disk if everything written so far were safe.
  Disk without_crash() const;

 private:
  struct File {
    Bytes bytes;
    std::size_t safe_bytes = 0;
  };
  // One name of one file: given up (no `to`), taken (no `from`) or exchanged.
  struct Relink {
    std::string from;
    std::string to;
    FileId file = 0;
  };
  struct Change {
    std::vector<Relink> links;
    std::string from_directory;
    std::string to_directory;
    std::vector<std::size_t> needs;  // changes that survive if this one does
    bool is_safe = false;
  };
  using Names = std::map<std::string, FileId, std::less<>>;

  static void apply(const Change& change, Names* names);
  void record(Change change, std::string_view given_up);
  void add_needs(std::string_view path, Change* change) const;
  std::vector<bool> choose_survivors(std::mt19937_64& random) const;
  static Bytes choose_content(const File& file, std::mt19937_64& random);

  std::vector<File> files_;
  Names start_;
  Names names_;  // as the running system sees them
  std::vector<Change> changes_;
  // Path -> the last change that gave it up, as a file or as a directory.
  std::map<std::string, std::size_t, std::less<>> given_up_;
};

}  // namespace tornasole::store
