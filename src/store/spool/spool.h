#pragma once

// Spool: a store that may go away, a journal on a local disk, and the thread that carries the one to the other.
//
//   1. While nothing waits, everything goes straight to the store.
//   2. What the store does not take (kIo) goes to the journal; from then on everything does, in order, until the
//      journal is empty again. So whatever was published earlier arrives earlier.
//   3. The thread sends the oldest action, and tries again after 1 s to 20 s while the store is away.
//   4. What the store refuses for good stays on disk, is counted and said once; the rest goes on.
//   5. cancel: the store is not asked any more. What comes goes to the journal, for `tornasole upload`.
//
// Shared by the SpoolStore, its files and the thread; thread-safe.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/spool/spool_journal.h"
#include "store/store.h"

namespace tornasole::store {

struct SpoolOptions {
  std::string directory = {};  // absolute; each process makes its own below it
  std::uint64_t max_bytes = std::uint64_t{1} << 30U;
  std::string location = {};                               // of the store that may go away
  std::function<void(std::string_view message)> log = {};  // from any thread
  double first_wait_s = 1;
  double max_wait_s = 20;
};

class Spool {
 public:
  Spool(std::unique_ptr<Store> target, std::unique_ptr<Store> journal, SpoolOptions options, FoundSpool self);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  Store& target() noexcept { return *target_; }
  Store& journal() noexcept { return *journal_; }
  const std::string& directory() const noexcept { return self_.directory; }

  // Whether what comes now has to wait behind something, or the store is not to be asked any more.
  bool must_wait();
  // kIo while the store is away: who only wants to look need not find that out again.
  Status check_reachable();
  // The store did not take something: said once per outage.
  void note_away(const Error& why);

  // Room for so many bytes: waits for it, until cancelled. kIo if there is none, or can never be.
  Status reserve(std::uint64_t bytes);
  void release(std::uint64_t bytes);
  std::int64_t next_number();
  // The data, if any, is there under its name and its room is reserved. `is_durable`: synced before it counts.
  Status add(SpoolAction action, bool is_durable);

  // What waits for a path: the last action on it.
  std::optional<SpoolAction> waiting(std::string_view path);
  // The last actions on everything below a directory ("" is the root), by path.
  std::vector<SpoolAction> waiting_below(std::string_view directory);
  double spooled_at_s(std::int64_t number);

  // Until nothing waits, or cancelled: kIo says what is left, and where.
  Status settle();
  void cancel() noexcept;
  StoreTraffic traffic();

 private:
  void carry() noexcept;
  // Returns whether the action is done with.
  bool carry_one(const SpoolAction& action);
  void log(const std::string& message) const;

  // constant
  const std::unique_ptr<Store> target_;
  const std::unique_ptr<Store> journal_;
  const SpoolOptions options_;
  const FoundSpool self_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::thread thread_;
  std::deque<SpoolAction> actions_;
  std::map<std::string, std::int64_t, std::less<>> newest_;  // path -> number of the last action on it
  std::int64_t next_number_ = 1;
  std::uint64_t used_bytes_ = 0;  // reserved
  std::uint64_t spooled_ = 0;
  std::uint64_t refused_ = 0;
  bool has_owner_ = false;
  bool is_away_ = false;
  bool is_cancelled_ = false;
};

}  // namespace tornasole::store
