#pragma once

// Index packs: what many index files of one worker say, in one file (docs/format.md 1.11). A pack is a copy for
// whoever pays for each file he reads, and never the truth: an entry counts only as long as the index file itself is
// listed with the version that the entry names.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tornasole/result.h"

namespace tornasole::format {

inline constexpr std::string_view kIndexPackDirectory = "tornasole/packs";
// Longer packs are not read.
inline constexpr std::uint64_t kMaxIndexPackBytes = std::uint64_t{8} << 20U;
// Longer index files are not packed: one by one costs little more.
inline constexpr std::uint64_t kMaxPackedIndexBytes = std::uint64_t{256} << 10U;
// Fewer are not worth a pack, nor the look for one.
inline constexpr std::size_t kMinPackedFiles = 32;

// tornasole/packs/<first step %012d>-<last step %012d>_<worker>.pack
struct IndexPackName {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::string worker_file_name;
};
std::string index_pack_path(const IndexPackName& name);
// Nothing if it is not such a name.
std::optional<IndexPackName> parse_index_pack_path(std::string_view path);

struct PackedIndex {
  std::string_view path;     // of the index file
  std::string_view version;  // as the store calls these bytes
  ByteView text;
};
void append_to_index_pack(const PackedIndex& index, Bytes* pack);
// Entries point into `pack`. kCorrupt if anything in it is wrong: nothing of such a pack counts.
Result<std::vector<PackedIndex>> decode_index_pack(ByteView pack);

}  // namespace tornasole::format
