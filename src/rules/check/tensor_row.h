#pragma once

// One row of a history: what is known of a tensor at one step, from its stored statistics and its value. Each note_...
// fills in the columns that it knows; what it is not given, or cannot read, leaves them as they are.

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "rules/check/run_record.h"

namespace tornasole::rules {

using Row = std::array<float, kColumnCount>;

inline void set(Row* row, Column column, double value) {
  (*row)[static_cast<std::size_t>(column)] = static_cast<float>(value);
}
inline bool knows(const Row& row, Column column) { return !std::isnan(row[static_cast<std::size_t>(column)]); }

// Whether a derived statistic is there, of this type, with so many elements at least.
bool is(const Tensor* tensor, DType dtype, std::size_t least);
template <typename T>
std::span<const T> elements(const Tensor& tensor) {
  return {reinterpret_cast<const T*>(tensor.bytes().data()), static_cast<std::size_t>(tensor.element_count())};
}

void note_stats(const Stats& stats, Row* row);
void note_counts(const Tensor* counts, Row* row);
void note_bad_reductions(const StepTensor& tensor, Row* row);
void note_quantiles(const Tensor* quantiles, Row* row);
// The activity of single units of the last steps is kept besides.
void note_activity(const Tensor* activity, Row* row, std::vector<std::vector<float>>* kept);
void note_across(const Tensor* across, Row* row);
void note_equal_units(const Tensor& value, Row* row);
void note_rank(const Tensor& value, Row* row);
// Of an activation that is bounded, once its other statistics are known.
void note_saturation(const TensorRole& role, Row* row);

// How often each class came. Whether labels were shares of all classes, such as one-hot ones.
bool note_shares(const Tensor* across, const Row& row, std::vector<std::int64_t>* pooled);
void note_labels(const Tensor* counts, std::vector<std::int64_t>* pooled);
// Which classes came with which predictions, of the last steps.
void note_pairs(const Tensor* pairs, std::uint32_t point, std::vector<ClassPairs>* kept);

}  // namespace tornasole::rules
