#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tornasole::tools {

// Pixels, 8 bits each of red, green and blue, rows from the top.
struct Picture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> bytes = {};  // width * height * 3
};

// The whole file. Empty if the compressor refused, which it does only without memory.
std::string encode_png(const Picture& picture);

}  // namespace tornasole::tools
