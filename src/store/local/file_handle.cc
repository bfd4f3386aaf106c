#include "store/local/file_handle.h"

#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace tornasole::store {
namespace {

// One write call moves at most this much: the kernel makes pages as large as the call, and those from half a MiB on
// were measured ten times slower per byte where memory is fragmented or comes from a host.
constexpr std::size_t kMaxWriteBytes = std::size_t{256} * 1024;
constexpr std::size_t kMaxPiecesPerWrite = IOV_MAX;

// Where the next write begins: a piece, and a byte in it.
struct Position {
  std::size_t piece = 0;
  std::size_t byte = 0;
};

// Describes the next write: as many pieces as fit. Empty once all is written.
std::span<iovec> gather(std::span<const ByteView> pieces, Position from, std::span<iovec> vectors) {
  std::size_t room = kMaxWriteBytes;
  std::size_t count = 0;
  for (; from.piece < pieces.size() && count < vectors.size() && room > 0; ++from.piece, from.byte = 0) {
    const ByteView rest = pieces[from.piece].substr(from.byte);
    if (rest.empty()) continue;
    const std::size_t length = std::min(rest.size(), room);
    vectors[count++] = {const_cast<char*>(rest.data()), length};  // writev reads only
    room -= length;
  }
  return vectors.first(count);
}

Position advance(std::span<const ByteView> pieces, Position from, std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t step = std::min(bytes, pieces[from.piece].size() - from.byte);
    from.byte += step;
    bytes -= step;
    if (from.byte == pieces[from.piece].size()) from = {from.piece + 1, 0};
  }
  return from;
}

}  // namespace

int FileHandle::close() noexcept {
  if (descriptor_ < 0) return 0;
  // Linux releases the descriptor even when close is interrupted: a second call could hit somebody else's file.
  const int result = ::close(release());
  return result == 0 || errno == EINTR ? 0 : errno;
}

int write_pieces(int descriptor, std::span<const ByteView> pieces, std::uint64_t* written) noexcept {
  std::array<iovec, kMaxPiecesPerWrite> vectors;
  Position position;
  while (true) {
    const std::span<iovec> batch = gather(pieces, position, vectors);
    if (batch.empty()) return 0;
    const ssize_t count =
        uninterrupted([&] { return writev(descriptor, batch.data(), static_cast<int>(batch.size())); });
    if (count < 0) return errno;
    // A file system that takes nothing and reports nothing would keep us here for ever.
    if (count == 0) return ENOSPC;
    *written += static_cast<std::uint64_t>(count);
    position = advance(pieces, position, static_cast<std::size_t>(count));
  }
}

int read_at(int descriptor, std::uint64_t offset, std::span<char> buffer, std::size_t* count) noexcept {
  *count = 0;
  while (*count < buffer.size()) {
    const std::span<char> rest = buffer.subspan(*count);
    const ssize_t got =
        uninterrupted([&] { return pread(descriptor, rest.data(), rest.size(), static_cast<off_t>(offset + *count)); });
    if (got < 0) return errno;
    if (got == 0) return 0;
    *count += static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace tornasole::store
