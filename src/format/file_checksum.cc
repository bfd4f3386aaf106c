#include "format/file_checksum.h"

#include <fmt/format.h>

#include <iterator>

#include "base/crc32c.h"
#include "base/errors.h"

namespace tornasole::format {
namespace {

constexpr std::string_view kKey = "\"crc32c\"";

}  // namespace

void append_file_checksum(Bytes* text) {
  const std::uint32_t checksum = masked_crc32c(*text);
  fmt::format_to(std::back_inserter(*text), ", {}: {}", kKey, checksum);
}

Status check_file_checksum(ByteView text, std::int64_t stored) {
  // Only closing brackets and the number follow the last key, so its last occurrence is the key itself. If the key was
  // spelled with escapes, this finds another place or none, and the checksum is wrong as it should be.
  const std::size_t key = text.rfind(kKey);
  std::size_t comma = ByteView::npos;
  if (key != ByteView::npos) comma = text.substr(0, key).find_last_not_of(" \t\r\n");
  if (comma == ByteView::npos || text[comma] != ',') {
    return corrupt_error("the key crc32c does not stand where it should, after everything else");
  }
  const std::uint32_t actual = masked_crc32c(text.substr(0, comma));
  if (stored != std::int64_t{actual}) {
    return corrupt_error("checksum crc32c is {}, but the {} bytes before it give {}", stored, comma, actual);
  }
  return {};
}

}  // namespace tornasole::format
