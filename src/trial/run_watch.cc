#include "trial/run_watch.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/paths.h"

namespace tornasole::trial {
namespace {

constexpr std::string_view kHealthDirectory = "tornasole";
constexpr std::string_view kHealthSuffix = "_health.json";
constexpr std::uint64_t kMaxHealthBytes = std::uint64_t{256} << 10U;
constexpr std::size_t kMaxHealthFiles = 65'536;
constexpr double kHeartbeatsMissed = 6;

// What a file claims is kept within what a writer may choose.
double silence_limit_s(const format::Health& health) {
  constexpr double kDefault = 60;
  constexpr double kLongest = 360;
  const double limit = kHeartbeatsMissed * health.heartbeat_interval_s;
  return std::isfinite(limit) ? std::clamp(limit, kDefault, kLongest) : kDefault;
}

std::string describe(const ProcessIdentity& process) {
  return fmt::format("process {} on host {}", process.pid, printable(std::string_view(process.host).substr(0, 255)));
}

// The run as a whole, after one more worker.
RunStatus combine(const RunStatus& run, const RunStatus& worker) {
  const auto weight = [](RunState state) {
    switch (state) {
      case RunState::kFailed: return 3;
      case RunState::kRunning: return 4;
      case RunState::kPresumedDead: return 2;
      case RunState::kEnded: return 1;
      case RunState::kUnknown: return 0;
    }
    return 0;
  };
  return weight(worker.state) > weight(run.state) ? worker : run;
}

}  // namespace

RunWatch::RunWatch(const Clock* clock, ProcessProbe probe)
    : clock_(*clock), probe_(std::move(probe)), last_life_ns_(clock->monotonic_ns()) {}

bool RunWatch::is_over() const noexcept {
  return status_.state == RunState::kEnded || status_.state == RunState::kFailed ||
         status_.state == RunState::kPresumedDead;
}

double RunWatch::silence_s() const noexcept {
  return static_cast<double>(clock_.monotonic_ns() - last_life_ns_) * 1e-9;
}

Status RunWatch::look(store::Store& store) {
  TORNASOLE_CHECK(look_at_marker(store));
  status_ = {};
  TORNASOLE_CHECK(look_at_writers(store));
  if (marker_age_s_ && status_.state != RunState::kFailed) status_ = {.state = RunState::kEnded};
  return {};
}

Status RunWatch::look_at_marker(store::Store& store) {
  marker_age_s_.reset();
  const auto marker = store.status(format::kEndMarkerPath);
  if (marker.ok()) {
    marker_age_s_ = clock_.wall_seconds() - marker->modified_s;
  } else if (marker.error().code == ErrorCode::kIo) {
    return marker.error();
  }
  return {};
}

Status RunWatch::look_at_writers(store::Store& store) {
  auto entries = store.list(kHealthDirectory, /*recursive=*/false);
  if (!entries.ok()) return entries.error().code == ErrorCode::kIo ? Status(entries.error()) : Status();
  std::size_t count = 0;
  for (const store::Entry& entry : *entries) {
    if (entry.status.is_directory || !entry.path.ends_with(kHealthSuffix) || count == kMaxHealthFiles) continue;
    ++count;
    const auto text = store.read_all(entry.path, kMaxHealthBytes);
    if (!text.ok() && text.error().code == ErrorCode::kIo) return text.error();
    if (!text.ok()) continue;
    const auto health = format::decode_health(*text);
    if (health.ok()) status_ = combine(status_, judge(entry.path, entry.status, *health));
  }
  return {};
}

RunStatus RunWatch::judge(const std::string& path, const store::FileStatus& file, const format::Health& health) {
  const std::int64_t now_ns = clock_.monotonic_ns();
  const auto [at, is_new] = writers_.try_emplace(path, Writer{health.heartbeat, file.modified_s, now_ns});
  Writer& writer = at->second;
  if (writer.heartbeat != health.heartbeat || writer.modified_s != file.modified_s) {
    writer = {health.heartbeat, file.modified_s, now_ns};
    note_life();
  }
  if (health.state == format::RunState::kEnded) return {.state = RunState::kEnded};
  if (health.state == format::RunState::kFailed) {
    return {RunState::kFailed, printable(std::string_view(health.reason).substr(0, 1000))};
  }
  if (const auto is_alive = probe_(health.process)) {
    if (*is_alive) return {.state = RunState::kRunning};
    return {RunState::kPresumedDead, fmt::format("{} is gone and left no word", describe(health.process))};
  }
  const double silence_s = static_cast<double>(now_ns - writer.changed_ns) * 1e-9;
  if (silence_s < silence_limit_s(health)) return {.state = RunState::kRunning};
  return {RunState::kPresumedDead,
          fmt::format("{} gave no sign of life for {:.0f} s", describe(health.process), silence_s)};
}

}  // namespace tornasole::trial
