// The name of one run among all others.

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "base/errors.h"
#include "capture/run_directory.h"

namespace tornasole::capture {

std::string make_run_id() {
  std::array<unsigned char, 16> random{};
  std::size_t filled = 0;
  while (filled < random.size()) {
    const ssize_t got = getrandom(random.data() + filled, random.size() - filled, 0);
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      break;
    }
  }
  if (filled < random.size()) {
    // A kernel without randomness: process and time still keep two runs apart.
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    std::uint64_t seed =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
    seed ^= static_cast<std::uint64_t>(getpid()) << 40U;
    for (unsigned char& byte : random) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      byte = static_cast<unsigned char>(seed >> 56U);
    }
  }
  std::string id;
  for (const unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace tornasole::capture
