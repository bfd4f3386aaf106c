#include "trial/trial_collections.h"

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "format/collections_file.h"
#include "trial/young_files.h"

namespace tornasole::trial {
namespace {

constexpr std::string_view kDirectory = "collections/000000000";
constexpr std::string_view kSuffix = "collections.json";
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{64} << 20U;

// "collections/000000000/worker_0_collections.json" -> "worker_0".
std::string worker_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  name.remove_suffix(kSuffix.size());
  if (name.ends_with('_')) name.remove_suffix(1);
  return std::string(name);
}

void write_schedule(JsonWriter& json, const format::StoredSchedule& schedule) {
  json.begin_object().key("save_interval").value(schedule.save_interval).key("save_steps").begin_array();
  for (const std::int64_t step : schedule.save_steps) json.value(step);
  json.end_array().key("start_step").value(schedule.start_step).key("end_step");
  if (schedule.end_step) {
    json.value(*schedule.end_step);
  } else {
    json.null();
  }
  if (!schedule.when_nan.empty()) {
    json.key("when_nan").begin_array();
    for (const std::string& pattern : schedule.when_nan) json.value(pattern);
    json.end_array();
  }
  json.end_object();
}

std::string save_config_json(const format::StoredCollection& collection) {
  if (!collection.schedules) return {};
  std::string text;
  JsonWriter json(&text);
  json.begin_object();
  for (const Mode mode : kAllModes) {
    json.key(mode_name(mode));
    if (const auto& schedule = (*collection.schedules)[mode_index(mode)]) {
      write_schedule(json, *schedule);
    } else {
      json.null();
    }
  }
  json.end_object();
  return text;
}

std::string reduction_config_json(const format::StoredCollection& collection) {
  if (!collection.reductions) return {};
  std::string names;
  for (const Reduction& reduction : collection.reductions->reductions) {
    names += fmt::format("{}{}", names.empty() ? "" : ",", reduction_config_text(reduction));
  }
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("save_raw_tensor").value(collection.reductions->save_raw_tensor);
  json.key("reductions").value(names).key("save_shape").value(collection.reductions->save_shape).end_object();
  return text;
}

// In their order. A set is needed: a hostile file has a million of them.
void add_missing(const std::vector<std::string>& from, std::vector<std::string>* to) {
  std::set<std::string, std::less<>> known(to->begin(), to->end());
  for (const std::string& text : from) {
    if (known.insert(text).second) to->push_back(text);
  }
}

void add_sorted(const std::vector<std::string>& from, std::vector<std::string>* to) {
  to->insert(to->end(), from.begin(), from.end());
  std::ranges::sort(*to);
  to->erase(std::ranges::unique(*to).begin(), to->end());
}

}  // namespace

std::size_t TrialCollections::readable_count() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(files_, [](const auto& entry) { return entry.second.num_workers > 0; }));
}

std::vector<std::string> TrialCollections::worker_file_names() const {
  std::vector<std::string> names;
  for (const auto& [path, file] : files_) names.push_back(file.worker_file_name);
  return names;
}

TrialCollection& TrialCollections::get(std::string_view name) {
  auto found = collections_.find(name);
  if (found == collections_.end()) {
    found = collections_.emplace(std::string(name), TrialCollection{.name = std::string(name)}).first;
  }
  return found->second;
}

Result<TrialCollections::LoadedFiles> TrialCollections::load(store::Store& store, double now_s) {
  TORNASOLE_TRY(const std::vector<store::Entry> entries, store.list(kDirectory, /*recursive=*/true));
  LoadedFiles loaded;
  for (const store::Entry& entry : entries) {
    if (!entry.path.ends_with(kSuffix)) continue;
    File& file = files_[entry.path];
    const bool is_known = !file.worker_file_name.empty() && file.status.size_bytes == entry.status.size_bytes &&
                          file.status.modified_s == entry.status.modified_s;
    if (is_known && (file.num_workers > 0 || file.is_reported)) continue;
    file = {.status = entry.status, .worker_file_name = worker_of(entry.path)};
    auto text = store.read_all(entry.path, kMaxFileBytes);
    if (text.ok()) {
      merge(entry.path, *text, &file, &loaded, now_s);
    } else if (text.error().code == ErrorCode::kIo) {
      return text.error();
    } else if (text.error().code == ErrorCode::kNotFound) {
      files_.erase(entry.path);
    } else {
      file.is_reported = true;
      loaded.damage.push_back({.path = entry.path, .what = text.error().message});
    }
  }
  return loaded;
}

void TrialCollections::merge(const std::string& path, const Bytes& text, File* file, LoadedFiles* loaded,
                             double now_s) {
  const auto decoded = format::decode_collections(text);
  if (!decoded.ok()) {
    if (is_young(file->status.modified_s, now_s)) {
      loaded->young.push_back(path);
    } else {
      file->is_reported = true;
      loaded->damage.push_back({.path = path, .what = decoded.error().message});
    }
    return;
  }
  file->num_workers = std::max<std::int64_t>(1, decoded->num_workers);
  if (has_claim_ && file->num_workers != num_workers_) {
    loaded->disagreements.push_back({.path = path,
                                     .what = fmt::format("says that {} workers write, another collections file says {}",
                                                         file->num_workers, num_workers_)});
  }
  num_workers_ = has_claim_ ? std::max(num_workers_, file->num_workers) : file->num_workers;
  has_claim_ = true;
  for (const format::StoredCollection& stored : decoded->collections) {
    TrialCollection& collection = get(stored.name);
    add_missing(stored.include_regex, &collection.include_regex);
    add_missing(stored.exclude_regex, &collection.exclude_regex);
    add_sorted(stored.tensor_names, &collection.tensor_names);
    if (collection.reduction_config.empty()) collection.reduction_config = reduction_config_json(stored);
    if (collection.save_config.empty()) collection.save_config = save_config_json(stored);
    collection.save_histogram = stored.save_histogram;
  }
}

}  // namespace tornasole::trial
