#include "rules/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/clock.h"
#include "base/errors.h"
#include "base/utf8.h"
#include "config/process_environment.h"

namespace tornasole::rules {
namespace {

// A file in memory that holds the input: nobody waits for a reader, and none that leaves early raises a signal.
class InputFile {
 public:
  explicit InputFile(std::string_view input) : descriptor_(memfd_create("tornasole-action", MFD_CLOEXEC)) {
    while (descriptor_ >= 0 && !input.empty()) {
      const ssize_t written = write(descriptor_, input.data(), input.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        fail();
        return;
      }
      input.remove_prefix(static_cast<std::size_t>(written));
    }
    if (descriptor_ < 0 || lseek(descriptor_, 0, SEEK_SET) < 0) fail();
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int descriptor() const noexcept { return descriptor_; }
  int error() const noexcept { return error_; }  // 0: none

 private:
  void fail() { error_ = errno; }
  int descriptor_;
  int error_ = 0;
};

// How a program is started; freed on every way out.
class SpawnSettings {
 public:
  explicit SpawnSettings(int input) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);  // what this process ignores is not the program's business
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    constexpr int kFlags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    posix_spawnattr_setflags(&attributes_, static_cast<short>(kFlags));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  const posix_spawn_file_actions_t* files() const noexcept { return &files_; }
  const posix_spawnattr_t* attributes() const noexcept { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

enum class Wait { kEnded, kTimedOut, kReapedElsewhere };

Wait wait_for(pid_t process, double timeout_s, int* how) {
  const std::int64_t last_ns = system_clock().monotonic_ns() + static_cast<std::int64_t>(timeout_s * 1e9);
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    const pid_t ended = waitpid(process, how, WNOHANG);
    if (ended == process) return Wait::kEnded;
    if (ended < 0 && errno == ECHILD) return Wait::kReapedElsewhere;  // the host takes all its children itself
    if (system_clock().monotonic_ns() >= last_ns) return Wait::kTimedOut;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

}  // namespace

Status run_program(const std::vector<std::string>& command, std::string_view input, double timeout_s) {
  const std::string shown = printable(command[0]);
  const InputFile file(input);
  if (file.error() != 0) return errno_error(file.error(), shown + ": its input");
  const SpawnSettings settings(file.descriptor());
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, arguments[0], settings.files(), settings.attributes(), arguments.data(),
                                  config::process_environment());
  if (failed != 0) return errno_error(failed, shown + " cannot be started");
  int how = 0;
  switch (wait_for(process, timeout_s, &how)) {
    case Wait::kReapedElsewhere: return {};
    case Wait::kTimedOut:
      kill(-process, SIGKILL);
      while (waitpid(process, &how, 0) < 0 && errno == EINTR) continue;
      return io_error("{} took longer than {} s and was killed", shown, timeout_s);
    case Wait::kEnded: break;
  }
  if (WIFSIGNALED(how)) return io_error("{} was ended by signal {}", shown, WTERMSIG(how));
  if (WEXITSTATUS(how) != 0) return io_error("{} ended with code {}", shown, WEXITSTATUS(how));
  return {};
}

}  // namespace tornasole::rules
