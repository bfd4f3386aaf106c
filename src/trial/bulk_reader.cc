#include "trial/bulk_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

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

// Memory that a thread uses again and again, unless it is much.
class Scratch {
 public:
  static constexpr std::size_t kKeptBytes = std::size_t{4} << 20U;

  std::span<char> take(std::size_t bytes) {
    if (bytes > capacity_ || capacity_ > kKeptBytes) {
      memory_.reset();
      memory_ = std::make_unique_for_overwrite<char[]>(bytes);
      capacity_ = bytes;
    }
    return {memory_.get(), bytes};
  }
  void give_back() noexcept {
    if (capacity_ <= kKeptBytes) return;
    memory_.reset();
    capacity_ = 0;
  }

 private:
  std::unique_ptr<char[]> memory_;
  std::size_t capacity_ = 0;
};
struct Workplace {
  Scratch file;      // a piece of an event file
  Bytes long_piece;  // one that is too long for that
  Scratch elements;  // of one value, where they are not aligned in the file
};

using Values = std::vector<Result<ReadValue>>;

class Reading {
 public:
  Reading(store::Store& store, const IndexColumns& columns, const std::vector<WantedValue>& wanted, Digest digest)
      : store_(store),
        columns_(columns),
        wanted_(wanted),
        digest_(std::move(digest)),
        max_gap_(store.capabilities().is_remote ? kMaxRemoteGapBytes : kMaxGapBytes) {
    for (std::size_t at = 0; at < wanted_.size();) at = add_job(at);
  }

  const std::vector<Job>& jobs() const noexcept { return jobs_; }

  Values run(const Job& job, Workplace* place) const noexcept {
    Values values;
    try {
      values.reserve(job.last - job.first);
      for (std::size_t at = job.first; at < job.last;) at = read_part(at, job.last, place, &values);
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
  std::size_t read_part(std::size_t first, std::size_t limit, Workplace* place, Values* values) const {
    const std::uint32_t id = wanted_[first].part;
    const std::string path = columns_.event_path(columns_.part(id));
    std::size_t at = first;
    while (at < limit && wanted_[at].part == id) {
      std::size_t last = at + 1;
      std::uint64_t end = end_of(at);
      // Neighbours are read together. A long record comes alone: its head is looked at first.
      while (last < limit && wanted_[last].part == id && is_near(at, last, end)) end = std::max(end, end_of(last++));
      const Result<ByteView> bytes = read_range(path, at, last, end, place);
      if (!bytes.ok() && bytes.error().code == ErrorCode::kNotFound) {
        // There is no file: looking for it again, once for each of many values, would take long.
        while (last < limit && wanted_[last].part == id) ++last;
      }
      add_range(path, at, last, bytes, place, values);
      Bytes().swap(place->long_piece);
      at = last;
    }
    return at;
  }

  bool is_near(std::size_t first, std::size_t next, std::uint64_t end) const noexcept {
    const std::uint64_t offset = location(next).offset();
    return offset >= location(first).offset() && offset <= end + max_gap_ &&
           std::max(end, end_of(next)) - location(first).offset() <= Scratch::kKeptBytes;
  }

  // The bytes of [first, last), which end at `end` or earlier, if the file does. Valid until the next are read.
  Result<ByteView> read_range(const std::string& path, std::size_t first, std::size_t last, std::uint64_t end,
                              Workplace* place) const {
    const std::uint64_t start = location(first).offset();
    if (last == first + 1) TORNASOLE_CHECK(check_record(store_, path, location(first)));
    if (end - start > Scratch::kKeptBytes) {  // the store looks at how long the file is before it takes memory
      TORNASOLE_TRY(place->long_piece, store_.read(path, start, end - start));
      return ByteView(place->long_piece);
    }
    const std::span<char> buffer = place->file.take(end - start);
    TORNASOLE_TRY(const std::size_t count, store_.read_into(path, start, buffer));
    return ByteView(buffer.data(), count);
  }

  void add_range(const std::string& path, std::size_t first, std::size_t last, const Result<ByteView>& bytes,
                 Workplace* place, Values* values) const {
    const std::uint64_t start = location(first).offset();
    for (std::size_t at = first; at < last; ++at) {
      if (!bytes.ok()) {
        values->emplace_back(bytes.error());
        continue;
      }
      const std::uint64_t skipped = std::min<std::uint64_t>(location(at).offset() - start, bytes->size());
      const auto event = decode_event(bytes->substr(skipped, location(at).length_bytes), location(at), path);
      values->push_back(event.ok() ? Result<ReadValue>(take_value(wanted_[at], *event, place)) : event.error());
    }
  }

  ReadValue take_value(const WantedValue& wanted, const format::Event& event, Workplace* place) const {
    ReadValue taken;
    bool keep = true;
    if (digest_ && event.dtype != DType::kString) {
      taken.digest = digest_(wanted, {event.dtype, aligned(event, place), event.shape}, &keep);
    }
    place->elements.give_back();
    if (keep) taken.value = event.to_tensor();
    return taken;
  }

  // Elements may lie anywhere in a file; who reads them as numbers wants them where such numbers may be.
  static const char* aligned(const format::Event& event, Workplace* place) {
    const ByteView elements = event.content;
    const std::size_t alignment = std::clamp<std::size_t>(dtype_size(event.dtype), 1, alignof(std::max_align_t));
    if (reinterpret_cast<std::uintptr_t>(elements.data()) % alignment == 0) return elements.data();
    const std::span<char> copy = place->elements.take(elements.size());
    if (!elements.empty()) std::memcpy(copy.data(), elements.data(), elements.size());
    return copy.data();
  }

  store::Store& store_;
  const IndexColumns& columns_;
  const std::vector<WantedValue>& wanted_;
  const Digest digest_;
  const std::uint64_t max_gap_;
  std::vector<Job> jobs_;
};

}  // namespace

void read_values(store::Store& store, const IndexColumns& columns, const std::vector<WantedValue>& wanted,
                 const BulkOptions& options, const OnValue& on_value) {
  const Reading reading(store, columns, wanted, options.digest);
  const std::vector<Job>& jobs = reading.jobs();
  const auto give = [&](const Job& job, Values values) {
    for (std::size_t at = job.first; at < job.last; ++at) {
      if (!on_value(wanted[at], std::move(values[at - job.first]))) return false;
    }
    return true;
  };
  const unsigned threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  if (jobs.size() < 2 || threads < 2) {
    Workplace place;
    for (const Job& job : jobs) {
      if (!give(job, reading.run(job, &place))) return;
    }
    return;
  }
  OrderedPool<Values> pool(
      jobs.size(), {.threads = threads, .max_waiting = std::size_t{4} * threads, .budget = options.budget_bytes});
  std::size_t next = 0;
  pool.run([&](std::size_t i) { return jobs[i].cost; },
           [&] { return [&, place = Workplace()](std::size_t i) mutable { return reading.run(jobs[i], &place); }; },
           [&](Values values) { return give(jobs[next++], std::move(values)); });
}

}  // namespace tornasole::trial
