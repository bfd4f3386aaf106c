#pragma once

// Index packs, where each file that is read is a request over the network (docs/format.md 1.11): which of them are
// worth reading, and what they say of a file.
//
//   1. List the packs, unless so few files are wanted that none can pay.
//   2. Give each file to the first pack that may have it: one of its worker whose name covers its step.
//   3. A pack is read if that moves no more bytes than its files one by one would, each request counted as some.
//   4. What a pack says of a file counts if the listing of the file itself shows the same version and length.
//
// So whatever packs claim, there are never more requests than files, nor many more bytes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/index_pack.h"
#include "store/store.h"
#include "tornasole/trial.h"
#include "trial/index_loader.h"

namespace tornasole::trial {

// Files that are read together: from the pack first, if there is one.
struct IndexPiece {
  std::size_t first = 0;  // in the plan's order
  std::size_t last = 0;
  std::string pack = {};  // its path; empty: one by one
};
struct IndexPlan {
  std::vector<std::size_t> order = {};  // places in the list of files, each once
  std::vector<IndexPiece> pieces = {};  // all of the order, by their last file
  std::vector<Damage> notes = {};       // packs that are no use, and why
};
IndexPlan plan_index_reading(store::Store& store, const std::vector<IndexFile>& files);

class OpenPack {
 public:
  static Result<OpenPack> read(store::Store& store, const std::string& path);
  // The text of the file, if the pack has it as it is listed.
  std::optional<ByteView> find(const IndexFile& file) const;

 private:
  std::unique_ptr<const Bytes> bytes_;
  std::vector<format::PackedIndex> entries_;  // sorted by path; they point into *bytes_
};

// What is noted of a pack that cannot be used.
Damage unused_pack(std::string_view path, std::string_view why);

}  // namespace tornasole::trial
