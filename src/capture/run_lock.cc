#include "capture/run_lock.h"

#include <algorithm>

#include "base/errors.h"

namespace tornasole::capture {
namespace {

constexpr std::string_view kPrefix = "claim-";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kIdDigits = 32;
constexpr int kTries = 200;
constexpr double kPauseSeconds = 0.05;
constexpr double kSilenceSeconds = 60;

bool is_announcement(std::string_view name) noexcept {
  if (name.size() != kPrefix.size() + kIdDigits + kSuffix.size()) return false;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  const std::string_view id = name.substr(kPrefix.size(), kIdDigits);
  return std::all_of(id.begin(), id.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

struct Others {
  std::string smallest = {};  // name of the first one that may be alive; empty: there is none
  std::string description = {};
  std::vector<std::string> dead = {};
};

Result<Others> look_around(store::Store& store, std::string_view own) {
  TORNASOLE_TRY(const auto entries, store.list("", false));
  Others others;
  StoreTime time(&store);
  for (const store::Entry& entry : entries) {
    if (entry.path == own || entry.status.is_directory || !is_announcement(entry.path)) continue;
    const auto text = store.read_all(entry.path, kMaxClaimBytes);
    if (!text.ok() && text.error().code == ErrorCode::kNotFound) continue;  // taken back since the listing
    const auto owner = text.ok() ? format::decode_claim(*text) : Result<ProcessIdentity>(text.error());
    // One that cannot be read may be on its way; it is believed for as long as a silent process is.
    const ProcessIdentity unknown{.host = "?"};
    const Liveness liveness = judge(owner.ok() ? *owner : unknown, entry.status.modified_s, kSilenceSeconds, time);
    if (liveness == Liveness::kDead) {
      others.dead.push_back(entry.path);
    } else if (others.smallest.empty()) {
      others.smallest = entry.path;
      others.description = owner.ok() ? describe(*owner) : fmt::format("whoever made {}", entry.path);
    }
  }
  return others;
}

}  // namespace

bool SetUpLock::owns_name(std::string_view name) noexcept {
  return is_announcement(name.substr(0, kPrefix.size() + kIdDigits + kSuffix.size()));
}

SetUpLock::~SetUpLock() {
  if (path_.empty()) return;
  // A failure leaves an announcement behind that ends with this process.
  try {
    const Status removed = store_->remove(path_);
    static_cast<void>(removed);
  } catch (...) {
    static_cast<void>(error_from_current_exception());
  }
}

Result<SetUpLock> SetUpLock::acquire(store::Store* store, const ProcessIdentity& self, const Sleep& sleep) {
  Others others;
  int attempt = 0;
  while (attempt < kTries) {
    if (attempt > 0 && sleep) sleep(kPauseSeconds);
    SetUpLock lock(store, fmt::format("{}{}{}", kPrefix, make_run_id(), kSuffix));
    TORNASOLE_CHECK(store->create_exclusive(lock.path_, format::encode_claim(self)));
    do {
      if (!others.smallest.empty() && sleep) sleep(kPauseSeconds);
      TORNASOLE_TRY(others, look_around(*store, lock.path_));
      if (others.smallest.empty()) {
        for (const std::string& path : others.dead) {
          const Status removed = store->remove(path);
          static_cast<void>(removed);  // debris of the dead is in nobody's way
        }
        return lock;
      }
    } while (++attempt < kTries && lock.path_ < others.smallest);
    others = {.description = others.description};
  }
  return runtime_error("{}: {} is setting up a run in the same directory", store->description(), others.description);
}

}  // namespace tornasole::capture
