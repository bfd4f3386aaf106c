// 1. Find the event files, sort them by run and mode.
// 2. Read all of them, in the order of their names; a point that comes again replaces the one before.
// 3. Number the steps, write them one by one, then the collections, then the end marker.

#include "tools/import_tensorboard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/collections_file.h"
#include "format/paths.h"
#include "store/local/local_store.h"
#include "tensorboard/summary_file.h"
#include "tools/absolute_path.h"
#include "tools/import_tags.h"
#include "tornasole/step_writer.h"
#include "tornasole/tensor.h"

namespace tornasole::tools {
namespace {

using tensorboard::SummaryEvent;
using tensorboard::SummaryHistogram;
using tensorboard::SummaryTensor;
using tensorboard::SummaryValue;

constexpr std::string_view kWorker = "worker_0";
constexpr std::size_t kListed = 5;

struct SourceFile {
  std::string path = {};
  RunName run = {};
};

// A point of a curve or a histogram.
struct Point {
  double wall_time = 0;
  double number = 0;
  SummaryHistogram histogram = {};
  bool has_sums = false;  // the histogram knows more than its buckets
};

struct Series {
  bool is_histogram = false;
  std::map<std::int64_t, Point> points = {};  // by step of the mode
};

// ---- one value

// The rows of a TensorFlow 2 histogram: lower edge, upper edge, count.
SummaryHistogram histogram_of_rows(const SummaryTensor& tensor) {
  SummaryHistogram histogram;
  for (std::size_t row = 0; row + 2 < tensor.numbers.size(); row += 3) {
    if (row == 0) {
      histogram.min = tensor.numbers[0];
      histogram.bucket_limit.push_back(histogram.min);
      histogram.bucket.push_back(0);
    }
    histogram.max = tensor.numbers[row + 1];
    histogram.bucket_limit.push_back(tensor.numbers[row + 1]);
    histogram.bucket.push_back(tensor.numbers[row + 2]);
    histogram.num += tensor.numbers[row + 2];
  }
  return histogram;
}

// Lower edge, upper edge and count of each bucket that is not the empty one in front.
std::vector<double> rows_of(const SummaryHistogram& histogram) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < histogram.bucket.size(); ++i) {
    const double lower = i == 0 ? std::min(histogram.min, histogram.bucket_limit[0]) : histogram.bucket_limit[i - 1];
    if (i == 0 && histogram.bucket[0] == 0) continue;
    rows.insert(rows.end(), {lower, histogram.bucket_limit[i], histogram.bucket[i]});
  }
  return rows;
}

// ---- reading

class Reading {
 public:
  explicit Reading(ImportReport* report) : report_(*report) {}

  Status take(const SourceFile& file, const SummaryEvent& event) {
    for (const SummaryValue& value : event.values) {
      // Only the first value of a tag says which plugin it is for.
      std::string& plugin = plugins_[{file.run.mode, value.tag}];
      if (!value.plugin.empty()) plugin = value.plugin;
      if (event.step < 0 || !take_value(file, event, value, plugin)) ++report_.left_out;
    }
    return {};
  }

  // Name and mode of each series, the words of the tags read.
  std::map<std::pair<Mode, std::string>, Series> finish() {
    std::map<std::pair<Mode, std::string>, Series> named;
    for (auto& [key, series] : series_) {
      const auto& [directory_mode, tag] = key;
      (series.is_histogram ? report_.histograms : report_.curves) += 1;
      report_.values += static_cast<std::int64_t>(series.points.size());
      if (directory_mode) {
        named[{*directory_mode, tag}] = std::move(series);
        continue;
      }
      TagName split = split_tag(tag);
      const bool is_taken = split.mode == Mode::kTrain && series_.contains({std::nullopt, split.name});
      if (!split.mode || is_taken) split = {tag, Mode::kTrain};
      const std::pair<Mode, std::string> place = {*split.mode, split.name};
      if (named.contains(place)) {
        named[{*split.mode, tag}] = std::move(series);
      } else {
        named[place] = std::move(series);
      }
    }
    return named;
  }

 private:
  bool take_value(const SourceFile& file, const SummaryEvent& event, const SummaryValue& value,
                  const std::string& plugin) {
    if (value.tag.empty()) return false;
    Point point{.wall_time = event.wall_time};
    bool is_histogram = false;
    if (value.simple_value) {
      point.number = static_cast<double>(*value.simple_value);
    } else if (value.histogram) {
      point.histogram = *value.histogram;
      point.has_sums = is_histogram = true;
    } else if (value.tensor && plugin == "histograms" && value.tensor->dims.size() == 2 && value.tensor->dims[1] == 3) {
      point.histogram = histogram_of_rows(*value.tensor);
      is_histogram = true;
    } else if (value.tensor && (plugin == "scalars" || plugin.empty()) && value.tensor->numbers.size() == 1) {
      point.number = value.tensor->numbers[0];
    } else {
      return false;
    }
    Series& series = series_[{file.run.mode, value.tag}];
    if (!series.points.empty() && series.is_histogram != is_histogram) return false;
    series.is_histogram = is_histogram;
    series.points[event.step] = std::move(point);
    return true;
  }

  ImportReport& report_;
  std::map<std::pair<std::optional<Mode>, std::string>, std::string> plugins_;
  std::map<std::pair<std::optional<Mode>, std::string>, Series> series_;
};

// ---- writing

class Writing {
 public:
  Writing(std::string directory, std::map<std::pair<Mode, std::string>, Series> series, ImportReport* report)
      : directory_(std::move(directory)), series_(std::move(series)), report_(*report) {}

  Status run() {
    // By step of the mode, then mode: TRAIN stands first in the order of modes.
    std::map<std::pair<std::int64_t, Mode>, std::vector<const std::string*>> steps;
    std::set<std::int64_t> numbers;
    for (const auto& [key, series] : series_) {
      for (const auto& [step, point] : series.points) {
        steps[{step, key.first}].push_back(&key.second);
        numbers.insert(step);
      }
    }
    std::int64_t next = 0;
    for (const auto& [place, names] : steps) {
      const std::int64_t global = numbers.size() == steps.size() ? place.first : next++;
      TORNASOLE_CHECK(write_step(global, place.second, place.first, names));
    }
    report_.steps = static_cast<std::int64_t>(steps.size());
    TORNASOLE_CHECK(write_collections());
    return mark_ended(directory_);
  }

 private:
  Status write_step(std::int64_t global, Mode mode, std::int64_t mode_step,
                    const std::vector<const std::string*>& names) {
    TORNASOLE_TRY(StepWriter step, StepWriter::open({.trial_dir = directory_,
                                                     .step = {global},
                                                     .worker = std::string(kWorker),
                                                     .mode = mode,
                                                     .mode_step = mode_step}));
    for (const std::string* name : names) {
      const Series& series = series_.at({mode, *name});
      const Point& point = series.points.at(mode_step);
      if (series.is_histogram) {
        TORNASOLE_CHECK(write_histogram(&step, *name, point));
        continue;
      }
      names_[is_loss_name(*name) ? "losses" : "metrics"].insert(*name);
      TORNASOLE_CHECK(step.write(*name, TensorView::of(point.number), point.wall_time));
    }
    return step.close();
  }

  Status write_histogram(StepWriter* step, const std::string& name, const Point& point) {
    const std::vector<double> rows = rows_of(point.histogram);
    const std::string table = name + "/histogram";
    names_["histograms"].insert(table);
    names_["histograms"].insert(name);
    if (!rows.empty()) {
      const auto count = static_cast<std::int64_t>(rows.size() / 3);
      TORNASOLE_CHECK(step->write(table, TensorView::of(rows, {count, 3}), point.wall_time));
    }
    const SummaryHistogram& histogram = point.histogram;
    if (!(histogram.num > 0)) return {};
    const auto write = [&](std::string_view reduction, double number) {
      return step->write(format::reduction_tensor_name(reduction, name, /*strip_colons=*/false), TensorView::of(number),
                         point.wall_time);
    };
    TORNASOLE_CHECK(write("min", histogram.min));
    TORNASOLE_CHECK(write("max", histogram.max));
    if (!point.has_sums) return {};
    const double mean = histogram.sum / histogram.num;
    TORNASOLE_CHECK(write("mean", mean));
    TORNASOLE_CHECK(write("l2", std::sqrt(histogram.sum_squares)));
    return write("std", std::sqrt(std::max(0.0, histogram.sum_squares / histogram.num - mean * mean)));
  }

  Status write_collections() {
    format::CollectionsFile file;
    for (const std::string_view name : {"default", "losses", "metrics", "histograms"}) {
      const auto found = names_.find(name);
      format::StoredCollection collection{.name = std::string(name)};
      if (found != names_.end()) collection.tensor_names.assign(found->second.begin(), found->second.end());
      file.collections.push_back(std::move(collection));
    }
    TORNASOLE_TRY(const auto store, store::open_local_store(directory_));
    TORNASOLE_TRY(const auto pending, store->create(format::collections_path(kWorker)));
    TORNASOLE_CHECK(pending->append(format::encode_collections(file)));
    return pending->publish(/*replace=*/false);
  }

  const std::string directory_;
  const std::map<std::pair<Mode, std::string>, Series> series_;
  ImportReport& report_;
  std::map<std::string, std::set<std::string>, std::less<>> names_;  // by collection
};

// ---- the source

Result<std::vector<SourceFile>> find_files(store::Store& store, const ImportOptions& options) {
  TORNASOLE_TRY(const auto entries, store.list("", /*recursive=*/true));
  std::vector<SourceFile> files;
  std::set<std::string> runs;
  for (const store::Entry& entry : entries) {
    const std::size_t slash = entry.path.rfind('/');
    const std::string_view name = std::string_view(entry.path).substr(slash == std::string::npos ? 0 : slash + 1);
    if (name.find("tfevents") == name.npos || entry.status.is_directory) continue;
    SourceFile file{entry.path, split_run(slash == std::string::npos ? "" : entry.path.substr(0, slash))};
    runs.insert(file.run.run);
    files.push_back(std::move(file));
  }
  if (files.empty()) {
    return make_error(ErrorCode::kNotFound, ErrorKind::kBase,
                      "{} holds no event files of TensorBoard (names with tfevents)", options.source);
  }
  std::vector<std::string> listed(runs.begin(), runs.end());
  if (listed.size() > kListed) {
    const std::size_t more = listed.size() - kListed;
    listed.resize(kListed);
    listed.push_back(fmt::format("and {} more", more));
  }
  if (options.run.empty() && runs.size() > 1) {
    return invalid_error("{} holds {} runs: {}; choose one", options.source, runs.size(), fmt::join(listed, ", "));
  }
  if (!options.run.empty() && !runs.contains(options.run)) {
    return make_error(ErrorCode::kNotFound, ErrorKind::kBase, "{} holds no run '{}'; it holds {}", options.source,
                      printable(options.run), fmt::join(listed, ", "));
  }
  if (!options.run.empty()) std::erase_if(files, [&](const SourceFile& file) { return file.run.run != options.run; });
  return files;
}

Result<std::string> open_output(const ImportOptions& options) {
  TORNASOLE_TRY(std::string path, absolute_path(options.path));
  TORNASOLE_TRY(const auto store, store::open_local_store(path));
  TORNASOLE_TRY(const auto entries, store->list("", /*recursive=*/false));
  if (!entries.empty()) return invalid_error("{} exists and is no empty directory; choose another name", path);
  return path;
}

}  // namespace

Result<ImportReport> import_tensorboard(const ImportOptions& options) {
  TORNASOLE_TRY(const std::string source, absolute_path(options.source));
  TORNASOLE_TRY(const auto store, store::open_local_store(source, {.read_only = true}));
  if (const auto status = store->status(""); !status.ok()) return status.error();
  TORNASOLE_TRY(const std::vector<SourceFile> files, find_files(*store, options));
  TORNASOLE_TRY(const std::string output, open_output(options));
  ImportReport report;
  Reading reading(&report);
  for (const SourceFile& file : files) {
    TORNASOLE_TRY(const std::uint64_t rest, tensorboard::read_file(*store, file.path, [&](const SummaryEvent& event) {
                    return reading.take(file, event);
                  }));
    ++report.files;
    if (rest > 0) ++report.cut;
  }
  auto series = reading.finish();
  if (series.empty()) {
    return make_error(ErrorCode::kNotFound, ErrorKind::kBase, "{}: its {} event files hold no curve and no histogram",
                      options.source, report.files);
  }
  TORNASOLE_CHECK(Writing(output, std::move(series), &report).run());
  return report;
}

}  // namespace tornasole::tools
