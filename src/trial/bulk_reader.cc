#include "trial/bulk_reader.h"

#include <algorithm>
#include <span>
#include <thread>

#include "base/errors.h"
#include "trial/ordered_pool.h"
#include "trial/value_reader.h"

namespace tornasole::trial {
namespace {

constexpr std::uint64_t kJobBytes = std::uint64_t{2} << 20U;
constexpr std::size_t kJobValues = 512;
// Reading this much that nobody wants is cheaper than another system call, or another request over the network.
constexpr std::uint64_t kMaxGapBytes = std::uint64_t{32} << 10U;
constexpr std::uint64_t kMaxRemoteGapBytes = std::uint64_t{512} << 10U;

struct Job {
  std::size_t first = 0;  // in the list of wanted values
  std::size_t last = 0;
  std::uint64_t cost = 0;
};

// What a value takes while it waits, besides its bytes.
constexpr std::uint64_t kValueOverhead = 256;

class Reading {
 public:
  Reading(store::Store& store, const IndexColumns& columns, const std::vector<WantedValue>& wanted)
      : store_(store),
        columns_(columns),
        wanted_(wanted),
        max_gap_(store.capabilities().is_remote ? kMaxRemoteGapBytes : kMaxGapBytes) {
    for (std::size_t at = 0; at < wanted_.size();) at = add_job(at);
  }

  const std::vector<Job>& jobs() const noexcept { return jobs_; }

  std::vector<Result<Tensor>> run(const Job& job) const noexcept {
    std::vector<Result<Tensor>> values;
    try {
      values.reserve(job.last - job.first);
      for (std::size_t at = job.first; at < job.last;) at = read_part(at, job.last, &values);
    } catch (...) {
      const Error error = error_from_current_exception();
      while (values.size() < job.last - job.first) values.emplace_back(error);
    }
    return values;
  }

 private:
  const Location& location(std::size_t at) const noexcept {
    return columns_.part(wanted_[at].part).locations[wanted_[at].place];
  }
  std::uint64_t end_of(std::size_t at) const noexcept { return location(at).offset() + location(at).length_bytes; }

  std::size_t add_job(std::size_t first) {
    Job job{.first = first, .last = first};
    while (job.last < wanted_.size() && job.last - job.first < kJobValues) {
      const std::uint64_t cost = location(job.last).length_bytes + kValueOverhead;
      if (job.last > job.first && job.cost + cost > kJobBytes) break;
      job.cost += cost;
      ++job.last;
    }
    jobs_.push_back(job);
    return job.last;
  }

  // Values of one part, up to `limit`; returns where the next part begins.
  std::size_t read_part(std::size_t first, std::size_t limit, std::vector<Result<Tensor>>* values) const {
    const std::uint32_t id = wanted_[first].part;
    const std::string path = columns_.event_path(columns_.part(id));
    std::size_t at = first;
    while (at < limit && wanted_[at].part == id) {
      std::size_t last = at + 1;
      std::uint64_t end = end_of(at);
      // Neighbours are read together. A long record comes alone: its head is looked at first.
      while (last < limit && wanted_[last].part == id && is_near(at, last, end)) end = std::max(end, end_of(last++));
      read_range(path, at, last, end, values);
      at = last;
    }
    return at;
  }

  bool is_near(std::size_t first, std::size_t next, std::uint64_t end) const noexcept {
    const std::uint64_t offset = location(next).offset();
    return offset >= location(first).offset() && offset <= end + max_gap_ &&
           std::max(end, end_of(next)) - location(first).offset() <= 2 * kJobBytes;
  }

  void read_range(const std::string& path, std::size_t first, std::size_t last, std::uint64_t end,
                  std::vector<Result<Tensor>>* values) const {
    const std::uint64_t start = location(first).offset();
    const bool is_single = last == first + 1;
    const auto bytes = is_single ? read_record(store_, path, location(first)) : store_.read(path, start, end - start);
    for (std::size_t at = first; at < last; ++at) {
      if (!bytes.ok()) {
        values->emplace_back(bytes.error());
        continue;
      }
      const std::uint64_t skipped = std::min<std::uint64_t>(location(at).offset() - start, bytes->size());
      values->push_back(decode_value(ByteView(*bytes).substr(skipped, location(at).length_bytes), location(at), path));
    }
  }

  store::Store& store_;
  const IndexColumns& columns_;
  const std::vector<WantedValue>& wanted_;
  const std::uint64_t max_gap_;
  std::vector<Job> jobs_;
};

}  // namespace

void read_values(store::Store& store, const IndexColumns& columns, const std::vector<WantedValue>& wanted,
                 const BulkOptions& options, const OnValue& on_value) {
  const Reading reading(store, columns, wanted);
  const std::vector<Job>& jobs = reading.jobs();
  const auto give = [&](const Job& job, std::vector<Result<Tensor>> values) {
    for (std::size_t at = job.first; at < job.last; ++at) {
      if (!on_value(wanted[at], std::move(values[at - job.first]))) return false;
    }
    return true;
  };
  const unsigned threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  if (jobs.size() < 2 || threads < 2) {
    for (const Job& job : jobs) {
      if (!give(job, reading.run(job))) return;
    }
    return;
  }
  OrderedPool<std::vector<Result<Tensor>>> pool(
      jobs.size(), {.threads = threads, .max_waiting = std::size_t{4} * threads, .budget = options.budget_bytes});
  std::size_t next = 0;
  pool.run([&](std::size_t i) { return jobs[i].cost; }, [&](std::size_t i) { return reading.run(jobs[i]); },
           [&](std::vector<Result<Tensor>> values) { return give(jobs[next++], std::move(values)); });
}

}  // namespace tornasole::trial
