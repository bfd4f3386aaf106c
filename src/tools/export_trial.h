#pragma once

// export_trial: the values of a trial as files of other programs.
//
//   csv    one file, long form: step, mode, mode_step, worker, tensor, index or statistic, value
//   npy    a directory with one NumPy file per value and manifest.json, which says what each one is
//   npz    the same in one zip file, for numpy.load
//   arrow  one Arrow IPC file, one row per value
//   tensorboard  a directory with a run per mode (and worker, if there are several): what has one element and stored
//          reductions as curves, other values as histograms, texts and trees as texts, hyperparameters
//
// NumPy files hold no pickles. bfloat16 and float8, which NumPy lacks, become float32, losslessly, and the manifest
// says so; texts become fixed-width Unicode. Values are read one at a time: memory is bounded by the largest value
// (arrow: by a batch of rows as well). Output appears whole or not at all: it is written beside its final name and
// renamed.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/verify.h"
#include "tornasole/stats.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

enum class ExportFormat : std::uint8_t { kCsv, kNpy, kNpz, kArrow, kParquet, kTensorboard };
std::string_view export_format_name(ExportFormat format) noexcept;  // "csv"
std::optional<ExportFormat> parse_export_format(std::string_view name) noexcept;

struct ExportOptions {
  ExportFormat format = ExportFormat::kCsv;
  std::string path = {};   // of the file; npy and tensorboard: of the directory
  bool overwrite = false;  // an existing file may be replaced; an existing directory must be empty either way
  bool compress = false;   // npz: deflate instead of stored

  std::vector<std::string> regex = {};  // only tensors with any of these in their name; empty: all
  Mode mode = Mode::kGlobal;            // kGlobal: all
  std::string worker = {};              // empty: all
  std::optional<std::int64_t> first_step = {}, end_step = {};  // global
  bool values = true;
  bool reductions = true;  // stored ones
  // csv: instead of the elements of each value, one row for each of these.
  StatSet statistics = {};
  // arrow: the elements as bytes (column `data`: binary, with `dtype`) instead of numbers (column `value`:
  // list<double>).
  bool arrow_binary = false;
  bool images = false;  // tensorboard: values of two small dimensions also as pictures
  bool append = false;  // tensorboard: the directory holds earlier steps, exported before
  // tensorboard: texts to show besides.
  struct Note {
    std::string tag = {};
    std::int64_t global_step = 0;
    std::string markdown = {};
  };
  std::vector<Note> notes = {};

  // Called after each value with the number of values so far. False: the export ends with kEnded and leaves nothing.
  std::function<bool(std::int64_t values)> progress = {};
};

struct ExportReport {
  std::int64_t files = 0;
  std::int64_t values = 0;
  std::int64_t reductions = 0;
  std::uint64_t bytes = 0;        // written
  std::int64_t widened = 0;       // values of types the format lacks, written as another type
  std::int64_t not_exact = 0;     // arrow with list<double>: integers beyond 2^53 that were rounded
  Findings<Damage> skipped = {};  // values that could not be read, or that the format cannot hold
};

// kUnsupported for Parquet, which the Python package writes; kInvalid if the output exists, or options disagree.
Result<ExportReport> export_trial(const Trial& trial, const ExportOptions& options);

// The name as one path component: letters, digits and ._- stay, any other byte becomes %XX; never empty, never "." or
// "..", at most 200 bytes (a longer one is cut and gets its SHA-256 after a "~"). Different names give different ones.
std::string safe_file_name(std::string_view name);

}  // namespace tornasole::tools
