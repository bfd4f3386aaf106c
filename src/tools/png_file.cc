#include "tools/png_file.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

namespace tornasole::tools {
namespace {

void append_big_endian(std::string* out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>((number >> shift) & 0xFFU);
}

// Length, name, content, checksum of name and content.
void append_chunk(std::string* out, const char* name, const std::string& content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::string body = name + content;
  *out += body;
  append_big_endian(out, crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(body.data()), body.size()));
}

// Each row preceded by its filter: 1, the difference to the pixel on the left, which serves lines and letters best.
std::string filtered_rows(const Picture& picture) {
  const std::size_t stride = std::size_t{picture.width} * 3;
  std::string rows;
  rows.reserve((stride + 1) * picture.height);
  for (std::size_t y = 0; y < picture.height; ++y) {
    rows += '\1';
    for (std::size_t x = 0; x < stride; ++x) {
      const unsigned left = x < 3 ? 0 : picture.bytes[y * stride + x - 3];
      rows += static_cast<char>(picture.bytes[y * stride + x] - left);
    }
  }
  return rows;
}

std::string compress(std::string rows) {
  std::string level(ISAL_DEF_LVL3_DEFAULT, '\0');
  std::string out(rows.size() + rows.size() / 8 + 4096, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_ZLIB;
  stream.level = 3;
  stream.level_buf = reinterpret_cast<std::uint8_t*>(level.data());
  stream.level_buf_size = static_cast<std::uint32_t>(level.size());
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(rows.data());
  stream.avail_in = static_cast<std::uint32_t>(rows.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  if (isal_deflate_stateless(&stream) != COMP_OK) return {};
  out.resize(stream.total_out);
  return out;
}

}  // namespace

std::string encode_png(const Picture& picture) {
  const std::string data = compress(filtered_rows(picture));
  if (data.empty()) return {};
  std::string header;
  append_big_endian(&header, picture.width);
  append_big_endian(&header, picture.height);
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, red green blue, no interlace
  std::string png("\x89PNG\r\n\x1a\n", 8);
  append_chunk(&png, "IHDR", header);
  append_chunk(&png, "IDAT", data);
  append_chunk(&png, "IEND", "");
  return png;
}

}  // namespace tornasole::tools
