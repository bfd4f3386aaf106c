#pragma once

// The checksum that ends an index or collections file (docs/format.md 4.3): `, "crc32c": <number>` as the last key of
// an object, covering every byte before its comma.

#include <cstdint>

#include "base/bytes.h"
#include "tornasole/result.h"

namespace tornasole::format {

// Appends the key to `text`, which holds everything before it.
void append_file_checksum(Bytes* text);
// `stored` is the number a parser found as the last key of the document. kCorrupt if it is not that of the text.
Status check_file_checksum(ByteView text, std::int64_t stored);

}  // namespace tornasole::format
