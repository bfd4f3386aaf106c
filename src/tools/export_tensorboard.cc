// TensorBoard's files of a trial. Below the output:
//
//   [<worker>/]<MODE>/events.out.tfevents.<first step %012d>.tornasole
//
// TensorBoard shows each directory as a run. What a value becomes:
//
//   one number               a curve <tensor>, as a 32-bit float; as a double where a float cannot hold it
//   a stored reduction       a curve <tensor>/<reduction>
//   more numbers             a histogram <tensor> of those that are finite; if there ever were others, curves of how
//   many:
//                            <tensor>/nan, <tensor>/inf; asked for and small with two dimensions, a picture
//                            <tensor>/image
//   texts                    a text <tensor>
//   trees/<column>           one text trees, a table of all columns of the step
//   hyperparameters/<name>   what TensorBoard's table of hyperparameters shows
//
// Complex numbers have no order and no curve: they are left out, and counted.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "reduce/histogram.h"
#include "reduce/reduce.h"
#include "tensorboard/summary_event.h"
#include "tensorboard/summary_tag.h"
#include "tools/elements.h"
#include "tools/export_writer.h"
#include "tools/png_file.h"

namespace tornasole::tools {
namespace {

using tensorboard::EventTime;

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;
constexpr std::int64_t kMaxPixels = 256;  // to a side
constexpr std::size_t kMaxRows = 1000;
constexpr std::size_t kMaxLines = 1000;
constexpr std::string_view kTrees = "trees/";
constexpr std::string_view kHyperparameters = "hyperparameters/";

std::string tag_of(std::string_view name) {
  std::string tag = tensorboard::clean_tag(replace_bad_utf8(name));
  return tag.empty() ? "_" : tag;
}

// ---- numbers

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

Bytes scalar_event(const EventTime& time, std::string_view tag, double value) {
  // A conversion that would leave the range is not defined, so it is looked at first.
  const bool is_large = std::isfinite(value) && std::fabs(value) > std::numeric_limits<float>::max();
  const bool is_tiny = value != 0 && std::fabs(value) < std::numeric_limits<float>::denorm_min();
  if (is_large || is_tiny) return tensorboard::encode_wide_scalar(time, tag, value);
  return tensorboard::encode_scalar(time, tag, static_cast<float>(value));
}

std::vector<double> finite_numbers(const TensorView& view) {
  std::vector<double> finite;
  visit_elements(view.dtype(), [&](auto load) {
    using Value = decltype(load(view.data(), 0));
    if constexpr (!kIsComplex<Value>) {
      for (std::int64_t i = 0; i < view.element_count(); ++i) {
        const auto number = static_cast<double>(load(view.data(), i));
        if (std::isfinite(number)) finite.push_back(number);
      }
    }
  });
  return finite;
}

// The numbers from dark to bright, what is not finite in red.
Picture picture_of(const TensorView& view) {
  Picture picture{.width = static_cast<std::uint32_t>(view.shape()[1]),
                  .height = static_cast<std::uint32_t>(view.shape()[0])};
  const std::vector<double> finite = finite_numbers(view);
  const auto [low, high] = std::ranges::minmax_element(finite);
  const double base = finite.empty() ? 0 : *low;
  const double span = finite.empty() || *high == *low ? 1 : *high - *low;
  picture.bytes.reserve(static_cast<std::size_t>(view.element_count()) * 3);
  visit_elements(view.dtype(), [&](auto load) {
    using Value = decltype(load(view.data(), 0));
    if constexpr (!kIsComplex<Value>) {
      for (std::int64_t i = 0; i < view.element_count(); ++i) {
        const auto number = static_cast<double>(load(view.data(), i));
        if (!std::isfinite(number)) {
          picture.bytes.insert(picture.bytes.end(), {255, 0, 0});
          continue;
        }
        const auto shade = static_cast<std::uint8_t>(std::clamp((number - base) / span, 0.0, 1.0) * 255);
        picture.bytes.insert(picture.bytes.end(), {shade, shade, shade});
      }
    }
  });
  return picture;
}

// ---- texts

std::vector<std::string> texts_of(const TensorView& view) {
  std::vector<std::string> texts;
  if (view.dtype() == DType::kString) {
    for (const std::string_view text : view.texts()) texts.push_back(replace_bad_utf8(text));
    return texts;
  }
  visit_elements(view.dtype(), [&](auto load) {
    using Value = decltype(load(view.data(), 0));
    if constexpr (!kIsComplex<Value>) {
      for (std::int64_t i = 0; i < view.element_count(); ++i) texts.push_back(fmt::format("{}", load(view.data(), i)));
    }
  });
  return texts;
}

// A text that Markdown leaves as it is, in one cell.
std::string cell_of(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '`' || c == '<') cell += '\\';
    cell += c == '\n' || c == '\r' ? ' ' : c;
  }
  return cell;
}

using Columns = std::vector<std::pair<std::string, std::vector<std::string>>>;
std::string table_of(const Columns& columns) {
  std::string text = "|";
  for (const auto& [name, cells] : columns) text += " " + cell_of(name) + " |";
  text += "\n|";
  std::size_t rows = 0;
  for (const auto& [name, cells] : columns) {
    text += "---|";
    rows = std::max(rows, cells.size());
  }
  for (std::size_t row = 0; row < std::min(rows, kMaxRows); ++row) {
    text += "\n|";
    for (const auto& [name, cells] : columns) text += " " + (row < cells.size() ? cell_of(cells[row]) : "") + " |";
  }
  if (rows > kMaxRows) text += fmt::format("\n\nand {} more rows", rows - kMaxRows);
  return text;
}

tensorboard::Hyperparameter hyperparameter_of(const TensorView& view) {
  if (view.dtype() == DType::kString) return texts_of(view).front();
  const double number = reduce::mean_of(view);
  if (view.dtype() == DType::kBool) return number != 0;
  return number;
}

// ---- files

// One run: the file of a mode and a worker.
class Board {
 public:
  Board(const ExportTarget& target, std::string path) : target_(target), path_(std::move(path)) {}

  Status add(double wall_time, ByteView payload) {
    if (is_new_) tensorboard::append_record(tensorboard::encode_version(wall_time), &gathered_);
    is_new_ = false;
    tensorboard::append_record(payload, &gathered_);
    return gathered_.size() < kFlushBytes ? Status() : flush();
  }
  Status flush() {
    if (!file_) {
      TORNASOLE_TRY(file_, target_.directory->create(path_));
    }
    written_ += gathered_.size();
    TORNASOLE_CHECK(file_->append(gathered_));
    gathered_.clear();
    return {};
  }
  Result<std::uint64_t> publish() {
    TORNASOLE_CHECK(flush());
    TORNASOLE_CHECK(file_->publish(/*replace=*/false));
    return written_;
  }

  // Of the step that is being read, and of the run.
  Columns trees = {};
  EventTime trees_time = {};
  std::map<std::string, tensorboard::Hyperparameter> hyperparameters = {};
  double hyperparameters_time = 0;
  std::set<std::string, std::less<>> was_not_finite = {};
  EventTime last = {};

 private:
  const ExportTarget& target_;
  std::string path_;
  std::unique_ptr<store::PendingFile> file_ = {};
  Bytes gathered_ = {};
  std::uint64_t written_ = 0;
  bool is_new_ = true;
};

class TensorboardWriter final : public ExportWriter {
 public:
  TensorboardWriter(ExportTarget target, const ExportOptions& options, bool has_many_workers, ExportReport* report)
      : target_(std::move(target)), options_(options), has_many_workers_(has_many_workers), report_(*report) {}

  Status add(const ExportedValue& value) override {
    if (is_complex(value.value.dtype())) return unsupported_error("complex numbers have no histogram and no curve");
    Board& board = board_of(value);
    const EventTime time{value.wall_time, value.global_step.number};
    if (!board.trees.empty() && board.trees_time.step != time.step) TORNASOLE_CHECK(write_trees(&board));
    board.last = time;
    if (value.reduction) {
      const std::string tag = tag_of(fmt::format("{}/{}", value.tensor, reduction_name(*value.reduction)));
      return board.add(time.wall_time, scalar_event(time, tag, reduce::mean_of(value.value)));
    }
    if (value.tensor.starts_with(kTrees)) {
      board.trees.emplace_back(value.tensor.substr(kTrees.size()), texts_of(value.value));
      board.trees_time = time;
      return {};
    }
    const bool is_single = value.value.element_count() == 1;
    if (value.tensor.starts_with(kHyperparameters) && is_single) {
      std::string name = replace_bad_utf8(value.tensor.substr(kHyperparameters.size()));
      board.hyperparameters.insert_or_assign(std::move(name), hyperparameter_of(value.value));
      board.hyperparameters_time = time.wall_time;
      return {};
    }
    if (value.value.dtype() == DType::kString) return add_texts(&board, time, value);
    if (value.value.element_count() == 0) return {};
    if (is_single) {
      return board.add(time.wall_time, scalar_event(time, tag_of(value.tensor), reduce::mean_of(value.value)));
    }
    TORNASOLE_CHECK(add_histogram(&board, time, value));
    return options_.images ? add_image(&board, time, value) : Status();
  }

  Status finish() override {
    for (const ExportOptions::Note& note : options_.notes) TORNASOLE_CHECK(add_note(note));
    for (auto& [key, board] : boards_) {
      if (!board.trees.empty()) TORNASOLE_CHECK(write_trees(&board));
      if (board.hyperparameters.empty()) continue;
      for (const Bytes& event :
           tensorboard::encode_hyperparameters(board.hyperparameters_time, board.hyperparameters)) {
        TORNASOLE_CHECK(board.add(board.hyperparameters_time, event));
      }
    }
    for (auto& [key, board] : boards_) {
      TORNASOLE_TRY(const std::uint64_t bytes, board.publish());
      report_.bytes += bytes;
      ++report_.files;
    }
    return {};
  }

 private:
  Board& board_of(const ExportedValue& value) {
    const std::pair<std::string, Mode> key = {has_many_workers_ ? std::string(value.worker) : "", value.step.mode};
    const auto known = boards_.find(key);
    if (known != boards_.end()) return known->second;
    const std::string worker = key.first.empty() ? "" : safe_file_name(key.first) + "/";
    return boards_
        .try_emplace(key, target_,
                     fmt::format("{}/{}{}/events.out.tfevents.{:012}.tornasole", target_.name, worker,
                                 mode_name(key.second), value.global_step.number))
        .first->second;
  }

  static Status write_trees(Board* board) {
    const std::string table = table_of(std::exchange(board->trees, {}));
    return board->add(board->trees_time.wall_time,
                      tensorboard::encode_text(board->trees_time, "trees", std::span(&table, 1)));
  }

  static Status add_texts(Board* board, const EventTime& time, const ExportedValue& value) {
    std::vector<std::string> lines = texts_of(value.value);
    if (lines.empty()) return {};
    if (lines.size() > kMaxLines) {
      const std::string rest = fmt::format("and {} more", lines.size() - kMaxLines);
      lines.resize(kMaxLines);
      lines.push_back(rest);
    }
    return board->add(time.wall_time, tensorboard::encode_text(time, tag_of(value.tensor), lines));
  }

  static Status add_histogram(Board* board, const EventTime& time, const ExportedValue& value) {
    const std::string tag = tag_of(value.tensor);
    const bool is_bool = value.value.dtype() == DType::kBool;
    const TensorView view = is_bool ? TensorView(DType::kUint8, value.value.data(), value.value.shape()) : value.value;
    TORNASOLE_TRY(reduce::Histogram histogram, reduce::tensorboard_histogram(view));
    const reduce::Outliers found = histogram.outliers;
    const std::int64_t infinite = found.pos_inf + found.neg_inf;
    if (found.nan + infinite > 0) {
      board->was_not_finite.insert(tag);
      // TensorBoard draws from the smallest to the largest, which must be numbers.
      const std::vector<double> finite = finite_numbers(view);
      TORNASOLE_TRY(histogram, reduce::tensorboard_histogram(TensorView::of(finite)));
    }
    if (board->was_not_finite.contains(tag)) {
      TORNASOLE_CHECK(
          board->add(time.wall_time, tensorboard::encode_scalar(time, tag + "/nan", static_cast<float>(found.nan))));
      TORNASOLE_CHECK(
          board->add(time.wall_time, tensorboard::encode_scalar(time, tag + "/inf", static_cast<float>(infinite))));
    }
    if (histogram.bucket.empty()) return {};
    return board->add(time.wall_time, tensorboard::encode_histogram(time, tag, histogram));
  }

  static Status add_image(Board* board, const EventTime& time, const ExportedValue& value) {
    const Shape& shape = value.value.shape();
    if (shape.rank() != 2 || shape[0] > kMaxPixels || shape[1] > kMaxPixels) return {};
    const std::string png = encode_png(picture_of(value.value));
    if (png.empty()) return io_error("no memory for a picture of '{}'", printable(value.tensor));
    return board->add(time.wall_time,
                      tensorboard::encode_image(time, tag_of(value.tensor) + "/image", {shape[0], shape[1]}, png));
  }

  // In the run that was exported first, which all readers open.
  Status add_note(const ExportOptions::Note& note) {
    if (boards_.empty()) return {};
    Board& board = boards_.begin()->second;
    return board.add(board.last.wall_time, tensorboard::encode_text({board.last.wall_time, note.global_step},
                                                                    tag_of(note.tag), std::span(&note.markdown, 1)));
  }

  const ExportTarget target_;
  const ExportOptions& options_;
  const bool has_many_workers_;
  ExportReport& report_;
  std::map<std::pair<std::string, Mode>, Board> boards_;
};

}  // namespace

Result<std::unique_ptr<ExportWriter>> make_tensorboard_writer(const ExportTarget& target, const ExportOptions& options,
                                                              bool has_many_workers, ExportReport* report) {
  return std::unique_ptr<ExportWriter>(std::make_unique<TensorboardWriter>(target, options, has_many_workers, report));
}

}  // namespace tornasole::tools
