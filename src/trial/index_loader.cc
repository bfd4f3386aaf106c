#include "trial/index_loader.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "base/errors.h"
#include "format/paths.h"
#include "trial/index_packs.h"
#include "trial/index_parser.h"

namespace tornasole::trial {
namespace {

struct Loaded {
  std::size_t place = 0;
  ParsedIndex index = {};
};

// A part of the plan, loaded by one thread.
struct Batch {
  std::size_t first = 0;  // in the plan's order
  std::size_t last = 0;
  std::vector<Loaded> loaded = {};
  LoadReport report = {};
  std::optional<Error> broken = {};  // why none of it was loaded
};

// What is to be loaded, and how.
struct Loading {
  store::Store& store;
  const std::vector<IndexFile>& files;
  const IndexPlan& plan;
};

Result<ParsedIndex> parse_text(const IndexFile& file, Bytes& text, IndexParser* parser) {
  TORNASOLE_TRY(ParsedIndex index, parser->parse(text));
  if (index.event_file == format::event_path(file.step, file.worker_file_name)) index.event_file = {};
  return index;
}

// From the pack if it has the file, else the file itself, which has the last word.
Result<ParsedIndex> load_one(store::Store& store, const IndexFile& file, const OpenPack* pack, IndexParser* parser) {
  if (const auto packed = pack != nullptr ? pack->find(file) : std::nullopt) {
    Bytes text(*packed);
    if (auto index = parse_text(file, text, parser); index.ok()) return index;
  }
  TORNASOLE_TRY(Bytes text, store.read_all(file.path, kMaxIndexFileBytes));
  return parse_text(file, text, parser);
}

std::optional<OpenPack> open_pack(store::Store& store, const std::string& path, std::vector<Damage>* notes) {
  auto pack = OpenPack::read(store, path);
  if (pack.ok()) return std::move(*pack);
  // Gone since the listing is no damage.
  if (pack.error().code != ErrorCode::kNotFound) notes->push_back(unused_pack(path, pack.error().message));
  return std::nullopt;
}

void load_batch(const Loading& loading, IndexTables* tables, LocationArena* arena, Batch* batch) {
  IndexParser parser(tables, arena);
  batch->loaded.reserve(batch->last - batch->first);
  for (const IndexPiece& piece : loading.plan.pieces) {
    const std::size_t first = std::max(piece.first, batch->first);
    const std::size_t last = std::min(piece.last, batch->last);
    if (first >= last) continue;
    std::optional<OpenPack> pack;
    if (!piece.pack.empty()) pack = open_pack(loading.store, piece.pack, &batch->report.notes);
    for (std::size_t at = first; at < last; ++at) {
      const std::size_t place = loading.plan.order[at];
      auto index = load_one(loading.store, loading.files[place], pack ? &*pack : nullptr, &parser);
      if (index.ok()) {
        batch->loaded.push_back({place, std::move(*index)});
      } else {
        batch->report.failed.push_back({place, std::move(index).error()});
      }
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
void load_lane(const Loading& loading, Lane* lane) noexcept {
  try {
    load_batch(loading, &lane->tables, &lane->arena, &lane->batch);
  } catch (...) {
    lane->batch.broken = error_from_current_exception();
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

// Batches of about as many files each; a pack is read by one of them.
std::vector<Batch> cut_plan(const IndexPlan& plan, unsigned count) {
  std::vector<Batch> batches;
  std::size_t first = 0;
  auto piece = plan.pieces.begin();
  for (unsigned i = 0; i < count && first < plan.order.size(); ++i) {
    std::size_t last = std::max(first, plan.order.size() * (i + 1) / count);
    while (piece != plan.pieces.end() && piece->last < last) ++piece;
    if (piece != plan.pieces.end() && !piece->pack.empty() && last > piece->first) last = piece->last;
    if (last == first) continue;
    batches.push_back({.first = first, .last = last});
    first = last;
  }
  return batches;
}

std::vector<Batch> load_parallel(const Loading& loading, unsigned threads, IndexColumns* columns) {
  std::vector<Batch> batches = cut_plan(loading.plan, threads);
  std::vector<Lane> lanes(batches.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].batch = std::move(batches[i]);
  {
    // This thread only waits: a new one often starts on the processor of the thread that made it, and if that goes on
    // working the two take turns on it for milliseconds.
    std::vector<std::jthread> workers;
    for (Lane& lane : lanes) workers.emplace_back([&loading, &lane] { load_lane(loading, &lane); });
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    LaneMerger merger(&lanes[i], columns);
    for (Loaded& loaded : lanes[i].batch.loaded) merger.merge(&loaded.index);
    batches[i] = std::move(lanes[i].batch);
    lanes[i] = Lane();
  }
  return batches;
}

// What all batches loaded, in the order of the files.
std::vector<Loaded> join_batches(std::vector<Batch> batches, const IndexPlan& plan, LoadReport* report) {
  std::vector<Loaded> all;
  for (Batch& batch : batches) {
    if (batch.broken) {
      for (std::size_t at = batch.first; at < batch.last; ++at)
        report->failed.push_back({plan.order[at], *batch.broken});
      continue;
    }
    std::ranges::move(batch.loaded, std::back_inserter(all));
    std::ranges::move(batch.report.failed, std::back_inserter(report->failed));
    std::ranges::move(batch.report.notes, std::back_inserter(report->notes));
  }
  std::ranges::sort(report->failed, {}, &FailedFile::place);
  if (!std::ranges::is_sorted(all, {}, &Loaded::place)) std::ranges::sort(all, {}, &Loaded::place);
  return all;
}

}  // namespace

LoadReport load_index_files(store::Store& store, const std::vector<IndexFile>& files, const LoadOptions& options,
                            IndexColumns* columns) {
  const unsigned threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  IndexPlan plan = plan_index_reading(store, files);
  const Loading loading{store, files, plan};
  std::vector<Batch> batches;
  const std::size_t min_files = store.capabilities().is_remote ? 2 : options.min_parallel_files;
  if (threads == 1 || files.size() < min_files) {
    batches.push_back({.last = files.size()});
    load_batch(loading, &columns->tables(), &columns->arena(), &batches.back());
  } else {
    batches = load_parallel(loading, threads, columns);
  }
  LoadReport report{.notes = std::move(plan.notes)};
  std::vector<NewPart> parts;
  for (Loaded& loaded : join_batches(std::move(batches), plan, &report)) {
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
  columns->add(std::move(parts));
  return report;
}

}  // namespace tornasole::trial
