#include "tools/zip.h"

#include <zlib.h>

#include <array>
#include <vector>

#include "base/errors.h"

namespace tornasole::tools {
namespace {

constexpr std::uint16_t kVersionPlain = 20;
constexpr std::uint16_t kVersionZip64 = 45;
constexpr std::uint16_t kUtf8Names = 1U << 11;
constexpr std::uint16_t kDeflated = 8;
// The first of January 1980: archives of equal content are equal.
constexpr std::uint16_t kDate = (1U << 5) | 1U;
constexpr std::uint64_t kMaxContentBytes = 0xFFFFFFFE;

template <typename T>
void put(Bytes* out, std::uint64_t value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

// zlib counts input in 32 bits.
template <typename Use>
void for_each_chunk(std::span<const ByteView> pieces, const Use& use) {
  constexpr std::size_t kChunk = std::size_t{1} << 30;
  for (ByteView piece : pieces) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kChunk))) use(piece.substr(0, kChunk));
  }
}

// Raw deflate. Nothing if zlib has no memory.
bool deflate_pieces(std::span<const ByteView> pieces, Bytes* out) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return false;
  std::array<char, std::size_t{64} << 10> buffer;
  bool is_sound = true;
  const auto run = [&](ByteView input, int flush) {
    // zlib takes what it does not change through a pointer to what it might.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream.avail_in = static_cast<uInt>(input.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      is_sound = is_sound && deflate(&stream, flush) != Z_STREAM_ERROR;
      out->append(buffer.data(), buffer.size() - stream.avail_out);
    } while (is_sound && stream.avail_out == 0);
  };
  for_each_chunk(pieces, [&](ByteView chunk) { run(chunk, Z_NO_FLUSH); });
  run({}, Z_FINISH);
  deflateEnd(&stream);
  return is_sound;
}

}  // namespace

Status ZipWriter::add(std::string_view name, std::span<const ByteView> pieces) {
  std::uint64_t size = 0;
  uLong crc = crc32(0, nullptr, 0);
  for_each_chunk(pieces, [&](ByteView chunk) {
    size += chunk.size();
    crc = crc32(crc, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  });
  if (size > kMaxContentBytes || name.size() > 0xFFFF) {
    return unsupported_error("zip entry '{}' of {} bytes; at most {} are allowed", name.substr(0, 200), size,
                             kMaxContentBytes);
  }
  Bytes deflated;
  if (compress_ && !deflate_pieces(pieces, &deflated)) return io_error("zlib has no memory for '{}'", name);
  const bool is_deflated = compress_ && deflated.size() < size;
  const std::uint64_t offset = file_.size_bytes();
  const bool is_far = offset >= limits_.offset;

  // What the local header and the central directory have in common.
  Bytes common;
  put<std::uint16_t>(&common, is_far ? kVersionZip64 : kVersionPlain);
  put<std::uint16_t>(&common, kUtf8Names);
  put<std::uint16_t>(&common, is_deflated ? kDeflated : 0);
  put<std::uint16_t>(&common, 0);  // time
  put<std::uint16_t>(&common, kDate);
  put<std::uint32_t>(&common, crc);
  put<std::uint32_t>(&common, is_deflated ? deflated.size() : size);
  put<std::uint32_t>(&common, size);
  put<std::uint16_t>(&common, name.size());

  Bytes local = "PK\x03\x04" + common;
  put<std::uint16_t>(&local, 0);  // extra
  local += name;
  TORNASOLE_CHECK(file_.append(local));
  if (is_deflated) {
    TORNASOLE_CHECK(file_.append(deflated));
  } else {
    TORNASOLE_CHECK(file_.append(pieces));
  }

  directory_ += "PK\x01\x02";
  put<std::uint16_t>(&directory_, kVersionZip64);
  directory_ += common;
  put<std::uint16_t>(&directory_, is_far ? 12 : 0);  // extra
  put<std::uint16_t>(&directory_, 0);                // comment
  put<std::uint16_t>(&directory_, 0);                // disk
  put<std::uint16_t>(&directory_, 0);                // internal attributes
  put<std::uint32_t>(&directory_, 0);                // external attributes
  put<std::uint32_t>(&directory_, is_far ? 0xFFFFFFFF : offset);
  directory_ += name;
  if (is_far) {
    put<std::uint16_t>(&directory_, 1);  // zip64
    put<std::uint16_t>(&directory_, 8);
    put<std::uint64_t>(&directory_, offset);
  }
  ++entries_;
  return {};
}

Status ZipWriter::finish() {
  const std::uint64_t offset = file_.size_bytes();
  const bool needs_zip64 =
      offset >= limits_.offset || directory_.size() >= limits_.offset || entries_ >= limits_.entries;
  TORNASOLE_CHECK(file_.append(directory_));
  Bytes end;
  if (needs_zip64) {
    end += "PK\x06\x06";
    put<std::uint64_t>(&end, 44);
    put<std::uint16_t>(&end, kVersionZip64);
    put<std::uint16_t>(&end, kVersionZip64);
    put<std::uint32_t>(&end, 0);
    put<std::uint32_t>(&end, 0);
    put<std::uint64_t>(&end, entries_);
    put<std::uint64_t>(&end, entries_);
    put<std::uint64_t>(&end, directory_.size());
    put<std::uint64_t>(&end, offset);
    end += "PK\x06\x07";
    put<std::uint32_t>(&end, 0);
    put<std::uint64_t>(&end, offset + directory_.size());
    put<std::uint32_t>(&end, 1);
  }
  end += "PK\x05\x06";
  put<std::uint32_t>(&end, 0);
  put<std::uint16_t>(&end, needs_zip64 ? 0xFFFF : entries_);
  put<std::uint16_t>(&end, needs_zip64 ? 0xFFFF : entries_);
  put<std::uint32_t>(&end, needs_zip64 ? 0xFFFFFFFF : directory_.size());
  put<std::uint32_t>(&end, needs_zip64 ? 0xFFFFFFFF : offset);
  put<std::uint16_t>(&end, 0);
  return file_.append(end);
}

}  // namespace tornasole::tools
