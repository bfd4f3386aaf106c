#include "cli/array_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/element_format.h"
#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxRank = 64;        // NumPy's own limit; each axis is one level of recursion here
constexpr std::int64_t kMaxShown = 20'000;  // with many short axes the edges alone would be without end

class ArrayPrinter {
 public:
  ArrayPrinter(const ElementReader& reader, const ArrayTextOptions& options)
      : reader_(reader), shape_(reader.tensor().shape()), options_(options) {
    is_summarised_ = reader.count() > options.threshold;
    while (is_summarised_ && options_.edge_items > 1 && shown_count() > kMaxShown) --options_.edge_items;
    strides_.resize(shape_.rank(), 1);
    for (std::size_t axis = shape_.rank(); axis-- > 1;) strides_[axis - 1] = strides_[axis] * shape_[axis];
  }

  std::string print() {
    std::vector<std::int64_t> shown;
    collect(0, 0, &shown);
    const ElementFormat format(reader_, shown);
    format_ = &format;
    return axis_text(0, 0, " ", options_.line_width);
  }

 private:
  bool is_cut(std::size_t axis) const { return is_summarised_ && shape_[axis] > 2 * options_.edge_items; }
  std::int64_t shown_count() const {
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis < shape_.rank() && count <= kMaxShown; ++axis) {
      count *= std::min(shape_[axis], 2 * options_.edge_items + (is_cut(axis) ? 0 : 1));
    }
    return count;
  }
  // Calls visit(i) for each index of the axis that is shown, and gap() where the middle is left out.
  template <typename Visit, typename Gap>
  void each_shown(std::size_t axis, const Visit& visit, const Gap& gap) const {
    const std::int64_t size = shape_[axis];
    if (!is_cut(axis)) {
      for (std::int64_t i = 0; i < size; ++i) visit(i);
      return;
    }
    for (std::int64_t i = 0; i < options_.edge_items; ++i) visit(i);
    gap();
    for (std::int64_t i = size - options_.edge_items; i < size; ++i) visit(i);
  }
  void collect(std::size_t axis, std::int64_t offset, std::vector<std::int64_t>* shown) const {
    if (axis == shape_.rank()) return shown->push_back(offset);
    each_shown(axis, [&](std::int64_t i) { collect(axis + 1, offset + i * strides_[axis], shown); }, [] {});
  }

  std::string axis_text(std::size_t axis, std::int64_t offset, const std::string& indent, std::size_t width) const {
    return axis + 1 == shape_.rank() ? row_text(offset, indent, width) : block_text(axis, offset, indent, width);
  }
  // The last axis: words until the line is full.
  std::string row_text(std::int64_t offset, const std::string& indent, std::size_t width) const {
    std::string text;
    std::string line = indent;
    std::size_t columns = indent.size();
    const std::size_t limit = width > 0 ? width - 1 : 0;  // room for the closing bracket
    const auto extend = [&](const std::string& word) {
      const std::size_t word_columns = columns_of(word);
      if (columns > indent.size()) {
        // A line that is over ends where its last word does, without the blank that would have come.
        if (columns + 1 + word_columns > limit) {
          line.erase(line.find_last_not_of(' ') + 1);
          text += line + "\n";
          line = indent;
          columns = indent.size();
        } else {
          line += ' ';
          ++columns;
        }
      }
      line += word;
      columns += word_columns;
    };
    each_shown(shape_.rank() - 1, [&](std::int64_t i) { extend(format_->word(offset + i)); }, [&] { extend("..."); });
    text += line;
    return "[" + text.substr(indent.size()) + "]";
  }
  std::string block_text(std::size_t axis, std::int64_t offset, const std::string& indent, std::size_t width) const {
    const std::string line_end(shape_.rank() - axis - 1, '\n');
    std::string text;
    const auto add = [&](const std::string& part) {
      if (!text.empty()) text += line_end + indent;
      text += part;
    };
    each_shown(
        axis,
        [&](std::int64_t i) {
          add(axis_text(axis + 1, offset + i * strides_[axis], indent + " ", width > 0 ? width - 1 : 0));
        },
        [&] { add("..."); });
    return "[" + text + "]";
  }

  const ElementReader& reader_;
  const Shape& shape_;
  ArrayTextOptions options_;
  bool is_summarised_ = false;
  std::vector<std::int64_t> strides_;
  const ElementFormat* format_ = nullptr;
};

}  // namespace

std::string array_text(const Tensor& tensor, const ArrayTextOptions& options) {
  const ElementReader reader(tensor);
  if (reader.count() != tensor.element_count()) return "(the shape and the bytes do not agree)";
  if (reader.count() == 0) return "[]";
  if (tensor.shape().rank() == 0) return element_text(reader, 0);
  if (tensor.shape().rank() > kMaxRank) return fmt::format("({} dimensions, too many to print)", tensor.shape().rank());
  return ArrayPrinter(reader, options).print();
}

}  // namespace tornasole::cli
