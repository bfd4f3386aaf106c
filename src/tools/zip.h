#pragma once

// A zip archive, written front to back: stored or deflated entries, zip64 where numbers demand it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "store/store.h"
#include "tornasole/result.h"

namespace tornasole::tools {

class ZipWriter {
 public:
  // `file` must outlive this.
  ZipWriter(store::PendingFile* file, bool compress) : file_(*file), compress_(compress) {}

  // One entry, whose content is these pieces in order, 4 GiB at most. The name is UTF-8 with '/' between components.
  Status add(std::string_view name, std::span<const ByteView> pieces);
  // The central directory. Nothing may be added afterwards.
  Status finish();

  // Numbers from here on need zip64; a test makes them smaller.
  struct Limits {
    std::uint64_t offset = 0xFFFFFFFF;
    std::uint64_t entries = 0xFFFF;
  };
  void set_limits(Limits limits) { limits_ = limits; }

 private:
  store::PendingFile& file_;
  const bool compress_;
  Limits limits_ = {};
  Bytes directory_;
  std::uint64_t entries_ = 0;
};

}  // namespace tornasole::tools
