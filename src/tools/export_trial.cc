#include "tools/export_trial.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "format/paths.h"
#include "format/record.h"
#include "store/local/local_store.h"
#include "store/store_path.h"
#include "tools/absolute_path.h"
#include "tools/export_writer.h"

namespace tornasole::tools {
namespace {

constexpr std::array<std::pair<ExportFormat, std::string_view>, 6> kFormats = {
    {{ExportFormat::kCsv, "csv"},
     {ExportFormat::kNpy, "npy"},
     {ExportFormat::kNpz, "npz"},
     {ExportFormat::kArrow, "arrow"},
     {ExportFormat::kParquet, "parquet"},
     {ExportFormat::kTensorboard, "tensorboard"}}};

Status check_options(const ExportOptions& options) {
  if (options.format == ExportFormat::kParquet) {
    return unsupported_error(
        "Parquet is written by the Python package; the library writes csv, npy, npz, arrow and tensorboard");
  }
  const auto only_for = [&](bool is_set, ExportFormat format, std::string_view what) -> Status {
    if (!is_set || options.format == format) return {};
    return invalid_error("{} is for {}, the format is {}", what, export_format_name(format),
                         export_format_name(options.format));
  };
  TORNASOLE_CHECK(only_for(!options.statistics.empty(), ExportFormat::kCsv, "a choice of statistics"));
  TORNASOLE_CHECK(only_for(options.compress, ExportFormat::kNpz, "compression"));
  const bool is_board = options.images || options.append || !options.notes.empty();
  TORNASOLE_CHECK(only_for(is_board, ExportFormat::kTensorboard, "a picture, a note or an addition"));
  TORNASOLE_CHECK(only_for(options.arrow_binary, ExportFormat::kArrow, "a binary column"));
  if (!options.values && !options.reductions) return invalid_error("neither values nor reductions are to be exported");
  return {};
}

Result<ExportTarget> open_target(const ExportOptions& options) {
  if (options.path.starts_with("s3://")) {
    return unsupported_error("export to '{}': allowed: a local file or directory", options.path);
  }
  TORNASOLE_TRY(std::string path, absolute_path(options.path));
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const store::SplitPath split = store::split_path(path);
  if (split.name.empty()) return invalid_error("export to '{}': a file or directory is needed", options.path);
  const std::string parent = split.directory.empty() ? "/" : std::string(split.directory);
  TORNASOLE_TRY(std::shared_ptr<store::Store> directory, store::open_local_store(parent));
  ExportTarget target{.directory = std::move(directory), .name = std::string(split.name)};
  TORNASOLE_CHECK(store::check_path(target.name));
  const auto status = target.directory->status(target.name);
  if (!status.ok()) {
    if (status.error().code == ErrorCode::kNotFound) return target;
    return status.error();
  }
  if (options.format == ExportFormat::kTensorboard && options.append && status->is_directory) return target;
  if (options.format == ExportFormat::kNpy || options.format == ExportFormat::kTensorboard) {
    const auto entries = target.directory->list(target.name, /*recursive=*/false);
    if (status->is_directory && entries.ok() && entries->empty()) return target;
    return invalid_error("{} exists and is no empty directory; choose another name", path);
  }
  if (status->is_directory) return invalid_error("{} is a directory; a file is needed", path);
  if (!options.overwrite) return invalid_error("{} exists already; remove it, or allow to overwrite it", path);
  return target;
}

Result<std::unique_ptr<ExportWriter>> make_writer(const ExportTarget& target, const ExportOptions& options,
                                                  bool has_many_workers, ExportReport* report) {
  switch (options.format) {
    case ExportFormat::kCsv: return make_csv_writer(target, options, report);
    case ExportFormat::kNpy: return make_npy_writer(target, report);
    case ExportFormat::kNpz: return make_npz_writer(target, options, report);
    case ExportFormat::kArrow: return make_arrow_writer(target, options, report);
    case ExportFormat::kTensorboard: return make_tensorboard_writer(target, options, has_many_workers, report);
    case ExportFormat::kParquet: break;
  }
  return unsupported_error("no such format");
}

// When the steps of a trial were saved: the time of the first value in each event file, which is all that is read of
// it.
class StepTimes {
 public:
  explicit StepTimes(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

  double of(const SweptValue& value) {
    if (value.global_step.number == step_ && value.worker == worker_) return time_;
    step_ = value.global_step.number;
    worker_ = value.worker;
    const auto head = store_->read(format::event_path(step_, format::encode_worker(worker_)), 0, kHeadBytes);
    // The time is the first field of an event; one that has none keeps that of the step before.
    constexpr char kTimeField = 9;
    if (head.ok() && head->size() == kHeadBytes && (*head)[format::kRecordHeaderBytes] == kTimeField) {
      const double time = std::bit_cast<double>(load_u64(head->data() + format::kRecordHeaderBytes + 1));
      if (std::isfinite(time)) time_ = time;
    }
    return time_;
  }

 private:
  static constexpr std::uint64_t kHeadBytes = format::kRecordHeaderBytes + 9;

  std::unique_ptr<store::Store> store_;
  std::int64_t step_ = -1;
  std::string worker_;
  double time_ = 0;
};

class Export {
 public:
  Export(const ExportOptions& options, ExportWriter* writer, ExportReport* report)
      : options_(options), writer_(*writer), report_(*report) {}

  void use_times(std::unique_ptr<store::Store> store) { times_.emplace(std::move(store)); }

  // False: the sweep ends; status() says why.
  bool take(const SweptValue& swept) {
    if (swept.value == nullptr) {
      skip(swept, swept.error != nullptr ? swept.error->message : "it cannot be read");
      return true;
    }
    const ExportedValue value{.tensor = swept.name,
                              .global_step = swept.global_step,
                              .step = swept.step,
                              .worker = swept.worker,
                              .reduction = swept.reduction,
                              .wall_time = times_ ? times_->of(swept) : 0,
                              .value = *swept.value};
    status_ = writer_.add(value);
    if (!status_.ok()) {
      if (status_.error().code != ErrorCode::kUnsupported) return false;
      skip(swept, status_.error().message);
      status_ = Status();
      return true;
    }
    ++(swept.reduction ? report_.reductions : report_.values);
    if (options_.progress && !options_.progress(report_.values + report_.reductions)) {
      status_ = make_error(ErrorCode::kEnded, ErrorKind::kBase, "the export was stopped by its caller after {} values",
                           report_.values + report_.reductions);
    }
    return status_.ok();
  }
  Status status() const { return status_; }

 private:
  void skip(const SweptValue& swept, std::string_view why) {
    report_.skipped.add({.path = fmt::format("{} at step {} of {}", swept.name, swept.global_step.number, swept.worker),
                         .what = std::string(why)});
  }

  const ExportOptions& options_;
  ExportWriter& writer_;
  ExportReport& report_;
  std::optional<StepTimes> times_;  // for the formats that ask
  Status status_;
};

}  // namespace

std::string_view export_format_name(ExportFormat format) noexcept {
  for (const auto& [known, name] : kFormats) {
    if (known == format) return name;
  }
  return "unknown";
}

std::optional<ExportFormat> parse_export_format(std::string_view name) noexcept {
  for (const auto& [format, known] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string safe_file_name(std::string_view name) {
  constexpr std::size_t kMaxBytes = 200;
  constexpr std::size_t kHashBytes = 64;
  constexpr char kDigits[] = "0123456789ABCDEF";
  if (name.empty()) return "%";
  std::string safe;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                          c == '-' || (c == '.' && !safe.empty());  // neither "." nor a hidden file
    if (is_plain) {
      safe += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    safe += {'%', kDigits[byte >> 4], kDigits[byte & 15U]};
  }
  if (safe.size() > kMaxBytes) {
    safe.resize(kMaxBytes - kHashBytes - 1);
    safe += '~' + sha256_hex(name);
  }
  return safe;
}

Result<ExportReport> export_trial(const Trial& trial, const ExportOptions& options) {
  TORNASOLE_CHECK(check_options(options));
  const std::vector<std::string> workers = trial.workers();
  if (!options.worker.empty() && std::ranges::find(workers, options.worker) == workers.end()) {
    return make_error(ErrorCode::kInvalid, ErrorKind::kInvalidWorker, "worker '{}': the trial has {}", options.worker,
                      fmt::join(workers, ", "));
  }
  SweepQuery query{.mode = options.mode,
                   .first_step = options.first_step,
                   .end_step = options.end_step,
                   .worker = options.worker,
                   .values = options.values,
                   .reductions = options.reductions};
  if (!options.regex.empty()) {
    TORNASOLE_TRY(query.names, trial.tensor_names({.regex = options.regex}));
  }
  TORNASOLE_TRY(const ExportTarget target, open_target(options));
  ExportReport report;
  TORNASOLE_TRY(const auto writer, make_writer(target, options, workers.size() > 1, &report));
  if (options.regex.empty() || !query.names.empty()) {
    Export work(options, writer.get(), &report);
    if (options.format == ExportFormat::kTensorboard) {
      TORNASOLE_TRY(const std::string source, absolute_path(trial.path()));
      auto store = store::open_local_store(source, {.read_only = true});
      if (store.ok()) work.use_times(std::move(*store));
    }
    TORNASOLE_CHECK(trial.sweep(query, [&](const SweptValue& swept) { return work.take(swept); }));
    TORNASOLE_CHECK(work.status());
  }
  TORNASOLE_CHECK(writer->finish());
  return report;
}

}  // namespace tornasole::tools
