#pragma once

// Who writes, or wrote, into a trial: judged from the end marker, the health files, the claim and the published steps.
//
//   in:  a store; whatever lies there is untrusted
//   out: Survey
//
// Used by: RunDirectory.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/run_directory.h"
#include "format/run_files.h"
#include "store/store.h"

namespace tornasole::capture {

using Sleep = std::function<void(double seconds)>;

inline constexpr std::uint64_t kMaxHealthBytes = 256 << 10;
inline constexpr std::uint64_t kMaxRunBytes = 64 << 10;
inline constexpr std::uint64_t kMaxClaimBytes = 4 << 10;

struct HealthFile {
  std::string path;
  store::FileStatus status = {};
  std::optional<format::Health> health = {};  // nothing: damaged
  std::string problem = {};                   // why it is damaged
};
// All health files, sorted by path; damaged ones included.
Result<std::vector<HealthFile>> read_health_files(store::Store& store);

// kMaybe: it runs on another host and gave a sign of life within six heartbeats.
enum class Liveness { kDone, kDead, kMaybe, kAlive };

// The store's clock, asked once and only if somebody wants to know: each question makes a file.
class StoreTime {
 public:
  explicit StoreTime(store::Store* store) : store_(*store) {}
  std::optional<double> now_s();  // nothing: the store cannot say

 private:
  store::Store& store_;
  bool is_asked_ = false;
  std::optional<double> now_s_ = {};
};
Liveness judge(const ProcessIdentity& process, double modified_s, double silence_limit_s, StoreTime& time);
Liveness judge(const HealthFile& file, StoreTime& time);
// Six heartbeats, which is 60 s on a disk; what a file claims is kept between 60 s and 360 s.
double silence_limit_s(const format::Health& health);

// A writer that may be alive, and how its file looked.
struct Suspect {
  std::string path;
  double modified_s = 0;
  double heartbeat = 0;
  double silence_limit_s = 60;
};

struct Survey {
  Occupancy occupancy = {};
  std::vector<Suspect> suspects = {};  // not empty: kLive on their account alone
  bool has_files = false;              // a run left something that a new one must not mix with
};

struct SurveyOptions {
  const ProcessIdentity* self = nullptr;  // with own_run_id: what this run itself wrote is nobody's
  std::string_view own_run_id = {};
  std::vector<Suspect> presumed_dead = {};  // watched long enough; they count again if they change
};
Result<Survey> survey(store::Store& store, const SurveyOptions& options);
// The same, but a suspect is watched, up to 65 s, until it gives a sign of life or is presumed dead; options take note
// of the dead ones.
Result<Survey> survey_and_watch(store::Store& store, SurveyOptions* options, const Sleep& sleep);

// kInvalid if a live worker of another run writes there. One that may live counts if it gave a sign after `since_s`:
// silent since then, it is one that the chief presumed dead.
Status refuse_other_runs(store::Store& store, std::string_view run_id, double since_s);

Result<bool> has_end_marker(store::Store& store);
// Anything below index, events, collections or tornasole, or a stop request. Temporary files count: a killed run may
// have left nothing else.
Result<bool> has_run_files(store::Store& store);
// Highest step with an index file, over all workers; -1 if there is none. `before_s`: only files older than that.
Result<std::int64_t> last_published_step(store::Store& store, std::optional<double> before_s = {});

std::string describe(const ProcessIdentity& process);

}  // namespace tornasole::capture
