#include "format/index_pack.h"

#include <array>

#include "base/crc32c.h"
#include "base/errors.h"
#include "format/paths.h"
#include "format/record.h"

namespace tornasole::format {
namespace {

constexpr std::string_view kSuffix = ".pack";

template <std::size_t size>
std::string_view view(const std::array<char, size>& bytes) {
  return {bytes.data(), bytes.size()};
}

// Up to the next line end, which goes with it; nothing if there is none, or nothing before it.
std::optional<std::string_view> take_line(ByteView* rest) {
  const std::size_t end = rest->find('\n');
  if (end == ByteView::npos || end == 0) return std::nullopt;
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string index_pack_path(const IndexPackName& name) {
  return fmt::format("{}/{:012}-{:012}_{}{}", kIndexPackDirectory, name.first_step, name.last_step,
                     name.worker_file_name, kSuffix);
}

std::optional<IndexPackName> parse_index_pack_path(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  // What is before the dash is read as the step of a file, too.
  const auto first = parse_step_file(fmt::format("{}_x", name.substr(0, dash)), "");
  auto last = parse_step_file(name.substr(dash + 1), kSuffix);
  if (!first || first->worker_file_name != "x" || !last || first->step > last->step) return std::nullopt;
  IndexPackName parsed{first->step, last->step, std::move(last->worker_file_name)};
  return index_pack_path(parsed) == path ? std::optional(std::move(parsed)) : std::nullopt;
}

void append_to_index_pack(const PackedIndex& index, Bytes* pack) {
  const std::uint64_t length = index.path.size() + index.version.size() + index.text.size() + 2;
  pack->append(view(encode_record_header(length)));
  const std::size_t payload = pack->size();
  pack->append(index.path).push_back('\n');
  pack->append(index.version).push_back('\n');
  pack->append(index.text);
  pack->append(view(encode_trailer(masked_crc32c(ByteView(*pack).substr(payload)))));
}

Result<std::vector<PackedIndex>> decode_index_pack(ByteView pack) {
  std::vector<PackedIndex> entries;
  for (std::size_t at = 0; at < pack.size();) {
    auto record = decode_record(pack.substr(at), at);
    if (!record.ok()) return corrupt_error("{}", record.error().message);
    // What the frame takes for the constant may be the checksum all the same.
    if (!record->is_verified && masked_crc32c(record->payload) != kConstantTrailer) {
      return corrupt_error("record at {} has no checksum", at);
    }
    ByteView rest = record->payload;
    const auto path = take_line(&rest);
    const auto version = path ? take_line(&rest) : std::nullopt;
    if (!version) return corrupt_error("record at {} does not begin with a path and a version", at);
    entries.push_back({*path, *version, rest});
    at += record->payload.size() + kRecordFrameBytes;
  }
  return entries;
}

}  // namespace tornasole::format
