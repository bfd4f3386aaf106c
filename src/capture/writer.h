#pragma once

// Writer: the thread that turns jobs into files.
//
//   1. The thread starts with the first job; before it there are no files.
//   2. First step: the directory is taken (RunDirectory::begin).
//      Whoever starts workers together may clear it again meanwhile: until a step is published, it is taken once more.
//   3. A step's values are appended as they come. At its end: collections file if it changed, event file, index file.
//   4. A step that fails is removed and counted. Five in a row: capture goes off; one due step a minute is tried.
//   5. Close: what is queued is finished, the collections and health files are written, then the end marker.
//   Beside it, after the index files they repeat: index packs, where reading many files costs.
//
// A store that hangs can hold this thread for ever. The hook then leaves it behind: everything the thread touches
// belongs to the Writer, which is shared between the hook and the thread for that one reason.

#include <atomic>
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

#include "base/clock.h"
#include "capture/checkpoint.h"
#include "capture/health.h"
#include "capture/index_packer.h"
#include "capture/job_queue.h"
#include "capture/run_directory.h"
#include "capture/step_files.h"
#include "capture/summary_writer.h"
#include "config/config.h"
#include "store/store.h"

namespace tornasole::capture {

class Writer : public std::enable_shared_from_this<Writer> {
 public:
  Writer(const config::Config& config, std::unique_ptr<store::Store> store, const Clock* clock,
         const RunIdentity& identity, std::shared_ptr<Health> health);
  ~Writer();

  // ---- hook's side
  // Starts the thread. Where it throws, the job is still the caller's.
  void push(Job&& job, std::size_t bytes = 0, JobQueue::Wake wake = JobQueue::Wake::kLater);
  // Memory that jobs which wait may lie in. It is kept until the thread has ended.
  void keep(Buffer chunk) noexcept { last_chunk_ = std::move(chunk); }
  JobQueue& queue() noexcept { return queue_; }
  Health& health() noexcept { return *health_; }
  store::Store& store() noexcept { return *store_; }
  // Whether a step that is due now may be queued; while capture is off, one a minute.
  bool accepts_step() noexcept;
  // Counts a step that was not accepted.
  void note_unaccepted_step();
  bool is_off() const noexcept { return off_until_ns_.load(std::memory_order_relaxed) != 0; }
  // Whether anything was pushed: before that it has no thread and has touched no file.
  bool has_started() const noexcept;
  // In a forked child: the same, false also if that cannot be told there.
  bool is_untouched() noexcept;
  // For another writer to take over, while this one has not started.
  std::unique_ptr<store::Store> release_store() noexcept { return std::move(store_); }
  bool is_stop_requested() const noexcept { return is_stop_requested_.load(std::memory_order_relaxed); }
  // Until everything pushed so far was handled; false if that takes longer.
  bool wait_idle(double seconds);
  // Pushes the job and waits for the thread to end, at most so long. False: the thread was left behind.
  bool close(CloseJob job, double seconds);
  // A name kept for as long as anybody can refer to it. Caller serialises.
  const std::string* keep_name(std::string name);

 private:
  // Values that were gathered leave the process after this long.
  static constexpr std::int64_t kFlushNs = 50'000'000;

  void start();

  struct Finished {  // a step that only waits for its sync
    StepFiles files;
    StepEndJob end;
  };

  void run() noexcept;
  void handle(Job* job) noexcept;
  void handle_job(ValueJob& job);
  void handle_job(NumbersJob& job);
  void handle_job(StreamJob& job);
  void handle_job(PieceJob& job);
  void handle_job(ShapeJob& job);
  void handle_job(ChunkDoneJob& job);
  void handle_job(StepStartJob& job);
  void handle_job(StepEndJob& job);
  void handle_job(StepDropJob& job);
  void handle_job(ReadySummaryJob& job);
  void handle_job(ModelJob& job);
  void handle_job(CollectionsJob& job);
  void handle_job(FlushJob& job);
  void handle_job(CloseJob& job);
  bool is_current(std::uint64_t serial) const noexcept { return current_ && current_->id().serial == serial; }
  void check_current(const Status& status);
  void step_failed(std::string_view cause, const Error& error);
  // That another process has the directory is one cause, told once.
  std::string_view cause_of(std::string_view cause) const noexcept { return is_refused_ ? "refused" : cause; }
  LogLevel level() const noexcept { return is_refused_ ? refusal_level_ : LogLevel::kError; }

  Status ensure_begun();
  Status begin_run(std::int64_t* first_free_step);
  // If the directory is gone and no step was published: takes it again, with everything that was in it.
  Status renew_if_gone();
  Status renew();
  // Runs `write`, and once more each time it fails because the directory was just being removed.
  Status write_or_renew(const std::function<Status()>& write);
  void open_first_event_file();
  Status publish(StepFiles* files, const StepEndJob& end);
  void publish_held();
  void after_commit(const StepFiles& files, const StepEndJob& end) noexcept;
  void follow_up(const StepFiles& files, const StepEndJob& end);
  // At every saved step; where each look is a request, at most every ten seconds.
  void look_for_stop_request();
  // Until the store has everything, or the close takes too long; what is left is told.
  void settle();
  Status write_small_file(const std::string& path, ByteView content);
  Status write_collections(const std::shared_ptr<const format::CollectionsFile>& file);
  Status remove_oldest();
  // Readers do without a pack, so one that cannot be written is no failure of the capture. Said once.
  void write_index_pack();
  void tick();
  void publish_health(bool is_urgent);
  void write_health();
  format::Health make_health() const;
  std::int64_t wait_ns() const;

  // constant
  const config::Config config_;
  std::unique_ptr<store::Store> store_;  // gone only from a writer that never starts
  const Clock* const clock_;
  const std::int64_t health_ns_;          // between two health files, if something changed
  const std::int64_t heartbeat_ns_;       // and if nothing did
  const LogLevel refusal_level_;          // a lone process may well meet another, as forked ones do
  const std::shared_ptr<Health> health_;  // shared with the hook, which outlives or precedes the thread's end

  JobQueue queue_;
  Buffer last_chunk_;                           // of its pool
  std::deque<std::string> names_;               // guarded by the hook's mutex
  std::atomic<std::int64_t> off_until_ns_ = 0;  // 0: on
  std::atomic<bool> is_refused_ = false;        // the directory belongs to somebody else: off for good
  std::atomic<bool> is_stop_requested_ = false;
  std::atomic<bool> is_abandoned_ = false;  // nobody waits for the thread any more
  std::atomic<bool> is_started_ = false;    // the thread was made; set with mutex_ held
  std::atomic<std::uint64_t> pushed_ = 0;

  std::mutex mutex_;
  std::condition_variable idle_;
  std::thread thread_;         // guarded by mutex_
  std::uint64_t handled_ = 0;  // guarded by mutex_
  bool has_ended_ = false;     // guarded by mutex_

  // writer thread only
  RunDirectory run_;
  const std::string worker_;
  std::optional<StepFiles> current_;
  std::uint64_t unbegun_ = 0;  // the serial of a step that there was no memory for; 0: none
  SummaryWriter summaries_;    // of the current step
  std::uint64_t stream_ = 0;   // the stream that is open in current_, 0 if none
  bool is_stream_stored_ = true;
  std::vector<Job> deferred_;  // jobs that came while a stream was open
  std::vector<Finished> held_;
  IndexPacker packer_;
  bool is_pack_failure_told_ = false;
  std::deque<std::int64_t> published_;  // steps, oldest first; only with keep_steps
  std::int64_t last_published_ = -1;
  std::map<std::string, std::int64_t> mode_steps_;  // of the last published step of each mode, by its name
  bool has_published_ = false;                      // a step, by this writer
  int renewals_ = 0;
  bool is_removal_told_ = false;
  int failures_in_a_row_ = 0;
  std::int64_t last_sync_ns_ = 0;
  std::int64_t last_stop_look_ns_ = 0;  // 0: never
  std::int64_t last_health_ns_ = 0;
  std::uint64_t published_changes_ = 0;
  std::string failed_reason_;
  std::string model_text_;
  std::shared_ptr<const format::CollectionsFile> collections_;  // as last written; kept until a step is published
  MetricsFile metrics_;
  std::int64_t last_flush_ns_ = 0;
  bool may_keep_ = false;  // of the jobs at hand, in the store
  bool is_closing_ = false;
};

}  // namespace tornasole::capture
