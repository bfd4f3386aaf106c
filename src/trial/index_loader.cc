#include "trial/index_loader.h"

#include <algorithm>
#include <thread>

#include "base/errors.h"
#include "format/paths.h"
#include "trial/index_parser.h"

namespace tornasole::trial {
namespace {

struct Loaded {
  std::size_t place = 0;
  ParsedIndex index = {};
};

// A run of neighbouring files, loaded by one thread.
struct Batch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::vector<Loaded> loaded = {};
  std::vector<FailedFile> failed = {};
};

Result<ParsedIndex> load_one(store::Store& store, const IndexFile& file, IndexParser* parser) {
  TORNASOLE_TRY(Bytes text, store.read_all(file.path, kMaxIndexFileBytes));
  TORNASOLE_TRY(ParsedIndex index, parser->parse(text));
  if (index.event_file == format::event_path(file.step, file.worker_file_name)) index.event_file = {};
  return index;
}

void load_batch(store::Store& store, const std::vector<IndexFile>& files, IndexTables* tables, LocationArena* arena,
                Batch* batch) {
  IndexParser parser(tables, arena);
  batch->loaded.reserve(batch->last - batch->first);
  for (std::size_t place = batch->first; place < batch->last; ++place) {
    auto index = load_one(store, files[place], &parser);
    if (index.ok()) {
      batch->loaded.push_back({place, std::move(*index)});
    } else {
      batch->failed.push_back({place, std::move(index).error()});
    }
  }
}

// What one thread loads into: tables of its own, so that the threads share nothing.
struct Lane {
  Batch batch = {};
  IndexTables tables = {};
  LocationArena arena = {};
};

// No exception leaves a thread: one that ran out of memory fails all of its files.
void load_lane(store::Store& store, const std::vector<IndexFile>& files, Lane* lane) noexcept {
  try {
    load_batch(store, files, &lane->tables, &lane->arena, &lane->batch);
  } catch (...) {
    const Error error = error_from_current_exception();
    lane->batch.loaded.clear();
    lane->batch.failed.clear();
    lane->batch.failed.push_back({lane->batch.first, error});
  }
}

// Moves what a lane loaded over to the tables of the trial.
class LaneMerger {
 public:
  LaneMerger(Lane* lane, IndexColumns* columns) : lane_(*lane), tables_(columns->tables()) {
    for (std::uint32_t id = 0; id < lane_.tables.names.size(); ++id) {
      tensors_.push_back(tables_.names.intern(lane_.tables.names.name(id)));
    }
    for (std::uint32_t id = 0; id < lane_.tables.shapes.size(); ++id) {
      shapes_.push_back(tables_.shapes.intern(lane_.tables.shapes.dims(id)));
    }
    tables_.original_names.merge(lane_.tables.original_names, tables_.names, tensors_);
    for (std::uint32_t layout = 0; layout < lane_.tables.layouts.size(); ++layout) merge_layout(layout);
    columns->arena().adopt(std::move(lane_.arena));
  }

  void merge(ParsedIndex* index) {
    const Merged& merged = layouts_[index->layout];
    index->layout = merged.layout;
    if (merged.has_shapes) renumber_shapes(index->locations, merged);
    if (merged.order.empty()) return;
    scratch_.assign(index->locations, index->locations + merged.order.size());
    for (std::size_t i = 0; i < merged.order.size(); ++i) index->locations[i] = scratch_[merged.order[i]];
  }

 private:
  struct Merged {
    std::uint32_t layout = 0;
    std::vector<std::uint32_t> order = {};   // new place -> old place; empty if they are the same
    std::vector<std::uint32_t> shapes = {};  // old places of shape records
    bool has_shapes = false;
  };

  void merge_layout(std::uint32_t layout) {
    const auto old = lane_.tables.layouts.series(layout);
    std::vector<std::pair<Series, std::uint32_t>> renumbered;
    renumbered.reserve(old.size());
    Merged merged;
    for (std::uint32_t place = 0; place < old.size(); ++place) {
      renumbered.emplace_back(series_of(tensors_[tensor_of(old[place])], kind_of(old[place])), place);
      if (is_shape(old[place])) merged.shapes.push_back(place);
    }
    merged.has_shapes = !merged.shapes.empty();
    const bool is_sorted = std::ranges::is_sorted(renumbered);
    if (!is_sorted) std::ranges::sort(renumbered);
    std::vector<Series> series;
    series.reserve(old.size());
    for (const auto& [number, place] : renumbered) {
      series.push_back(number);
      if (!is_sorted) merged.order.push_back(place);
    }
    merged.layout = tables_.layouts.intern(series);
    layouts_.push_back(std::move(merged));
  }

  void renumber_shapes(Location* locations, const Merged& merged) const {
    for (const std::uint32_t place : merged.shapes) {
      locations[place].offset_and_flag = shapes_[locations[place].offset_and_flag];
    }
  }

  Lane& lane_;
  IndexTables& tables_;
  std::vector<std::uint32_t> tensors_;  // number in the lane -> number in the trial
  std::vector<std::uint32_t> shapes_;
  std::vector<Merged> layouts_;
  std::vector<Location> scratch_;
};

std::vector<Batch> load_parallel(store::Store& store, const std::vector<IndexFile>& files, unsigned threads,
                                 IndexColumns* columns) {
  std::vector<Lane> lanes(threads);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i].batch.first = files.size() * i / lanes.size();
    lanes[i].batch.last = files.size() * (i + 1) / lanes.size();
  }
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < lanes.size(); ++i) {
      workers.emplace_back([&store, &files, lane = &lanes[i]] { load_lane(store, files, lane); });
    }
    load_lane(store, files, &lanes[0]);
  }
  std::vector<Batch> batches;
  for (Lane& lane : lanes) {
    LaneMerger merger(&lane, columns);
    for (Loaded& loaded : lane.batch.loaded) merger.merge(&loaded.index);
    batches.push_back(std::move(lane.batch));
    lane = Lane();
  }
  return batches;
}

}  // namespace

std::vector<FailedFile> load_index_files(store::Store& store, const std::vector<IndexFile>& files,
                                         const LoadOptions& options, IndexColumns* columns) {
  const unsigned threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<Batch> batches;
  const std::size_t min_files = store.capabilities().is_remote ? 2 : options.min_parallel_files;
  if (threads == 1 || files.size() < min_files) {
    batches.push_back({.last = files.size()});
    load_batch(store, files, &columns->tables(), &columns->arena(), &batches.back());
  } else {
    const auto lanes = static_cast<unsigned>(std::min<std::size_t>(threads, files.size()));
    batches = load_parallel(store, files, lanes, columns);
  }
  std::vector<NewPart> parts;
  std::vector<FailedFile> failed;
  for (Batch& batch : batches) {
    for (Loaded& loaded : batch.loaded) {
      const IndexFile& file = files[loaded.place];
      parts.push_back({.global_step = file.step,
                       .worker = columns->intern_worker(file.worker_file_name),
                       .mode_step = loaded.index.mode_step,
                       .locations = loaded.index.locations,
                       .layout = loaded.index.layout,
                       .mode = loaded.index.mode,
                       .is_partial = loaded.index.is_partial,
                       .event_file = std::move(loaded.index.event_file),
                       .facts = loaded.index.facts});
    }
    std::ranges::move(batch.failed, std::back_inserter(failed));
  }
  columns->add(std::move(parts));
  return failed;
}

}  // namespace tornasole::trial
