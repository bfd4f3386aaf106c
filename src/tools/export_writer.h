#pragma once

// ExportWriter: one output format. Values come one at a time, in execution order.
//
// Used by: export_trial. Each format is one file: export_csv.cc, export_npy.cc, export_arrow.cc, export_tensorboard.cc.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"
#include "tools/export_trial.h"

namespace tornasole::tools {

// Borrowed for the call.
struct ExportedValue {
  std::string_view tensor;
  GlobalStep global_step = {};
  ModeStep step = {};
  std::string_view worker;
  std::optional<Reduction> reduction = {};
  double wall_time = 0;  // of its step; only for formats that show it
  const TensorView& value;
};

class ExportWriter {
 public:
  virtual ~ExportWriter() = default;
  // kUnsupported: the format cannot hold this value; nothing of it was written, and the next may follow.
  virtual Status add(const ExportedValue& value) = 0;
  // The output gets its name. Destroyed before that, nothing is left.
  virtual Status finish() = 0;
};

// Where the output goes: a directory, and the name of the file or directory in it.
struct ExportTarget {
  // Shared: the writer keeps it, and so does whoever made it.
  std::shared_ptr<store::Store> directory;
  std::string name;
};

Result<std::unique_ptr<ExportWriter>> make_csv_writer(const ExportTarget& target, const ExportOptions& options,
                                                      ExportReport* report);
Result<std::unique_ptr<ExportWriter>> make_npy_writer(const ExportTarget& target, ExportReport* report);
Result<std::unique_ptr<ExportWriter>> make_npz_writer(const ExportTarget& target, const ExportOptions& options,
                                                      ExportReport* report);
Result<std::unique_ptr<ExportWriter>> make_tensorboard_writer(const ExportTarget& target, const ExportOptions& options,
                                                              bool has_many_workers, ExportReport* report);
Result<std::unique_ptr<ExportWriter>> make_arrow_writer(const ExportTarget& target, const ExportOptions& options,
                                                        ExportReport* report);

}  // namespace tornasole::tools
