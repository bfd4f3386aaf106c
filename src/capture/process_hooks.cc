#include "capture/process_hooks.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "base/errors.h"

namespace tornasole::capture {
namespace {

constexpr std::array<int, 3> kSignals = {SIGTERM, SIGHUP, SIGINT};
constexpr double kSignalSeconds = 1.5;
constexpr int kSignalWaitMs = 1800;

struct Registry {
  std::mutex mutex;
  std::vector<HookState*> hooks;  // guarded by mutex
  bool is_prepared = false;       // guarded by mutex
  bool is_watching = false;       // guarded by mutex
};
// Never destroyed: exit handlers and detached threads use it until the very end.
Registry& registry() {
  static auto* the_registry = new Registry;
  return *the_registry;
}

// What the signal handler touches; it may touch nothing else.
int signal_pipe = -1;
std::atomic<unsigned> signals_served = 0;
static_assert(std::atomic<unsigned>::is_always_lock_free);
std::array<struct sigaction, 3> earlier_actions{};

void before_fork() { registry().mutex.lock(); }
void after_fork_in_parent() { registry().mutex.unlock(); }
void after_fork_in_child() {
  for (HookState* hook : registry().hooks) hook->become_inert();
  registry().hooks.clear();
  signal_pipe = -1;
  registry().mutex.unlock();
}

void close_all_at_exit() {
  std::vector<HookState*> hooks;
  {
    const std::lock_guard lock(registry().mutex);
    hooks = registry().hooks;
  }
  for (HookState* hook : hooks) {
    // The step that is open was cut by the exit.
    const Status closed = hook->close({.is_open_step_partial = true, .wait_s = hook->config().close_wait_s});
    if (!closed.ok()) continue;  // in the health file already
  }
}

void prepare_process_locked() {
  if (registry().is_prepared) return;
  registry().is_prepared = true;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  std::atexit(close_all_at_exit);
}

extern "C" void tornasole_on_signal(int signal_number) {
  const int saved_errno = errno;
  const unsigned served = signals_served.load();
  const auto byte = static_cast<unsigned char>(signal_number);
  if (signal_pipe < 0 || write(signal_pipe, &byte, 1) != 1) {
    // A child that inherited the handler, or no thread to hear it: the signal does what it did before us.
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  } else {
    // The training stands still meanwhile: a step that it finished now would come too late for the flush.
    const timespec millisecond = {0, 1'000'000};
    for (int waited = 0; signals_served.load() == served && waited < kSignalWaitMs; ++waited)
      nanosleep(&millisecond, nullptr);
  }
  errno = saved_errno;
}

// Flushes every hook that asked for it, then lets the signal do what it would have done without us.
void serve_signals(int read_end) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the handler that was there before runs where it always did
  unsigned char byte = 0;
  while (read(read_end, &byte, 1) == 1) {
    const int signal_number = byte;
    {
      const std::lock_guard lock(registry().mutex);
      std::size_t count = 0;
      for (const HookState* hook : registry().hooks) count += hook->config().flush_on_signal ? 1 : 0;
      for (HookState* hook : registry().hooks) {
        if (hook->config().flush_on_signal)
          hook->flush_for_signal(signal_number, kSignalSeconds / static_cast<double>(count));
      }
    }
    const auto at =
        static_cast<std::size_t>(std::find(kSignals.begin(), kSignals.end(), signal_number) - kSignals.begin());
    if (at < kSignals.size()) sigaction(signal_number, &earlier_actions[at], nullptr);
    // Pending before the handler returns, so that not one instruction of the training lies between.
    kill(getpid(), signal_number);
    signals_served.fetch_add(1);
  }
}

}  // namespace

void register_hook(HookState* hook) {
  const std::lock_guard lock(registry().mutex);
  prepare_process_locked();
  registry().hooks.push_back(hook);
}

void unregister_hook(HookState* hook) noexcept {
  if (hook->is_inert()) return;  // the child has no registry of its parent's hooks
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().hooks, hook);
}

void supersede_hook_at(const std::string& location) {
  std::vector<HookState*> same;
  {
    const std::lock_guard lock(registry().mutex);
    for (HookState* hook : registry().hooks) {
      if (hook->config().location == location && hook->config().rank == 0) same.push_back(hook);
    }
  }
  for (HookState* hook : same) {
    const Status closed = hook->close({.is_superseded = true, .wait_s = hook->config().close_wait_s});
    if (!closed.ok()) continue;  // its own report says so; the new hook checks the directory itself
  }
}

Status watch_signals() {
  const std::lock_guard lock(registry().mutex);
  if (registry().is_watching) return {};
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error(errno, "flush_on_signal: pipe");
  signal_pipe = ends[1];
  std::thread(serve_signals, ends[0]).detach();
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction earlier{};
    if (sigaction(kSignals[i], nullptr, &earlier) != 0) return errno_error(errno, "flush_on_signal: sigaction");
    earlier_actions[i] = earlier;
    // A signal that is ignored stays ignored.
    if ((earlier.sa_flags & SA_SIGINFO) == 0 && earlier.sa_handler == SIG_IGN) continue;
    struct sigaction ours{};
    ours.sa_handler = tornasole_on_signal;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    if (sigaction(kSignals[i], &ours, nullptr) != 0) return errno_error(errno, "flush_on_signal: sigaction");
  }
  registry().is_watching = true;
  return {};
}

}  // namespace tornasole::capture
