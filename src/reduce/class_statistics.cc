#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "reduce/blocks.h"
#include "reduce/derived.h"
#include "reduce/element_values.h"
#include "reduce/make_tensor.h"

namespace tornasole::reduce {
namespace {

constexpr std::uint32_t kNoClass = std::numeric_limits<std::uint32_t>::max();

// Calls function(class) for every element in row-major order, with kNoClass for one that is ignored. Every other class
// is from 0 to limit - 1, else kInvalid.
template <typename Function>
Status for_each_class(const TensorView& labels, std::int64_t limit, const Function& function) {
  double refused = 0;
  const bool are_classes = with_value_load(labels.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    return for_each_block<Raw>(labels, ElementOrder::kRowMajor, [&](const Raw* x, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        const double value = load(x[i]);
        if (value == kIgnoredLabel) {
          function(kNoClass);
          continue;
        }
        const bool is_class = value >= 0 && value < static_cast<double>(limit) && value == std::floor(value);
        if (!is_class) {
          refused = value;
          return false;
        }
        function(static_cast<std::uint32_t>(value));
      }
      return true;
    });
  });
  if (are_classes) return {};
  return invalid_error("classes: {} is not allowed; allowed: whole numbers from 0 to {}", refused, limit - 1);
}

Result<std::vector<std::uint32_t>> read_classes(const TensorView& labels) {
  std::vector<std::uint32_t> classes;
  classes.reserve(static_cast<std::size_t>(labels.element_count()));
  TORNASOLE_CHECK(for_each_class(labels, kMaxPairedClasses, [&](std::uint32_t c) { classes.push_back(c); }));
  return classes;
}

// Contiguous strides where there are none given.
std::vector<std::int64_t> strides_of(const TensorView& tensor) {
  if (!tensor.strides_bytes().empty()) return {tensor.strides_bytes().begin(), tensor.strides_bytes().end()};
  std::vector<std::int64_t> strides(tensor.shape().rank());
  auto stride = static_cast<std::int64_t>(dtype_size(tensor.dtype()));
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= tensor.shape()[axis];
  }
  return strides;
}

}  // namespace

Result<Tensor> class_counts(const TensorView& labels) {
  TORNASOLE_CHECK(check_real_elements(labels, "classes"));
  std::vector<std::int64_t> counts;
  TORNASOLE_CHECK(for_each_class(labels, kMaxClasses, [&](std::uint32_t c) {
    if (c == kNoClass) return;
    if (c >= counts.size()) counts.resize(c + 1);
    ++counts[c];
  }));
  return make_tensor<std::int64_t>(counts, Shape{static_cast<std::int64_t>(counts.size())});
}

Result<Tensor> class_pairs(const TensorView& labels, const TensorView& predictions, std::int64_t classes) {
  TORNASOLE_CHECK(check_real_elements(labels, "classes"));
  TORNASOLE_CHECK(check_real_elements(predictions, "classes"));
  if (labels.element_count() != predictions.element_count()) {
    return invalid_error("classes: {} labels of shape {} and {} predictions of shape {} are no pairs",
                         labels.element_count(), labels.shape().to_string(), predictions.element_count(),
                         predictions.shape().to_string());
  }
  if (classes < 0 || classes > kMaxPairedClasses) {
    return invalid_error("classes: {} of them are not allowed; allowed: at most {}", classes, kMaxPairedClasses);
  }
  TORNASOLE_TRY(const std::vector<std::uint32_t> rows, read_classes(labels));
  TORNASOLE_TRY(const std::vector<std::uint32_t> columns, read_classes(predictions));
  auto size = static_cast<std::size_t>(classes);
  const auto is_pair = [&](std::size_t i) { return rows[i] != kNoClass && columns[i] != kNoClass; };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_pair(i)) size = std::max<std::size_t>({size, rows[i] + 1U, columns[i] + 1U});
  }
  std::vector<std::int64_t> pairs(size * size);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_pair(i)) ++pairs[rows[i] * size + columns[i]];
  }
  const auto extent = static_cast<std::int64_t>(size);
  return make_tensor<std::int64_t>(pairs, Shape{extent, extent});
}

Result<Tensor> predicted_classes(const TensorView& scores, std::size_t class_axis) {
  TORNASOLE_CHECK(check_real_elements(scores, "classes"));
  const Shape& shape = scores.shape();
  if (class_axis >= shape.rank() || shape[class_axis] < 1 || shape[class_axis] > kMaxClasses) {
    return invalid_error("classes: scores of shape {} with their classes along axis {}: allowed: 1 to {} scores there",
                         shape.to_string(), class_axis, kMaxClasses);
  }
  const std::vector<std::int64_t> strides = strides_of(scores);
  std::vector<std::int64_t> extents, moved_strides;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (axis == class_axis) continue;
    extents.push_back(shape[axis]);
    moved_strides.push_back(strides[axis]);
  }
  const Shape samples(extents);
  extents.push_back(shape[class_axis]);
  moved_strides.push_back(strides[class_axis]);
  const TensorView moved(scores.dtype(), scores.data(), Shape(extents), moved_strides);

  std::vector<std::int32_t> classes;
  classes.reserve(static_cast<std::size_t>(samples.element_count()));
  const auto last = static_cast<std::int32_t>(shape[class_axis] - 1);
  std::int32_t at = 0;
  std::int32_t best = 0;
  double highest = 0;
  with_value_load(scores.dtype(), [&](auto load) {
    using Raw = typename decltype(load)::Raw;
    for_each_block<Raw>(moved, ElementOrder::kRowMajor, [&](const Raw* x, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        const double score = load(x[i]);
        if (at == 0 || score > highest || (std::isnan(score) && !std::isnan(highest))) {
          highest = score;
          best = at;
        }
        if (at == last) classes.push_back(best);
        at = at == last ? 0 : at + 1;
      }
      return true;
    });
  });
  return make_tensor<std::int32_t>(classes, samples);
}

}  // namespace tornasole::reduce
