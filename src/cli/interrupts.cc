#include "cli/interrupts.h"

#include <atomic>
#include <csignal>

namespace tornasole::cli {
namespace {

// A signal handler has nothing else to write to.
std::atomic<bool> is_interrupted = false;

}  // namespace

void heed_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { is_interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool was_interrupted() noexcept { return is_interrupted; }

}  // namespace tornasole::cli
