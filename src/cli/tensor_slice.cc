#include "cli/tensor_slice.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"

namespace tornasole::cli {
namespace {

struct AxisSlice {
  std::int64_t begin = 0, step = 1, count = 0;
  bool is_index = false;  // the axis goes away
};

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Nothing for an empty text.
Result<std::optional<std::int64_t>> parse_number(std::string_view text, std::string_view part) {
  if (text.empty()) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return invalid_error("slice \"{}\": \"{}\" is no whole number; allowed: an index, or begin:end or begin:end:step",
                         part, text);
  }
  return std::optional(number);
}

// Python's rule: from the end if negative, then cut to the ends of the axis.
std::int64_t clamped(std::int64_t number, std::int64_t size, std::int64_t low, std::int64_t high) {
  if (number < 0) number = number < -size ? low : number + size;
  return std::clamp(number, low, high);
}

Result<AxisSlice> parse_range(const std::vector<std::string_view>& fields, std::string_view part, std::int64_t size) {
  TORNASOLE_TRY(const auto begin, parse_number(fields[0], part));
  TORNASOLE_TRY(const auto end, parse_number(fields[1], part));
  std::int64_t step = 1;
  if (fields.size() == 3) {
    TORNASOLE_TRY(const auto given, parse_number(fields[2], part));
    step = given.value_or(1);
  }
  if (step == 0) return invalid_error("slice \"{}\": the step is 0; allowed: any other whole number", part);
  // A step beyond the axis takes one element, as one just beyond it does.
  step = std::clamp(step, -size - 1, size + 1);
  AxisSlice slice{.step = step};
  if (step > 0) {
    slice.begin = clamped(begin.value_or(0), size, 0, size);
    const std::int64_t stop = clamped(end.value_or(size), size, 0, size);
    slice.count = stop > slice.begin ? (stop - slice.begin + step - 1) / step : 0;
  } else {
    slice.begin = begin ? clamped(*begin, size, -1, size - 1) : size - 1;
    const std::int64_t stop = end ? clamped(*end, size, -1, size - 1) : -1;
    slice.count = slice.begin > stop ? (slice.begin - stop - step - 1) / -step : 0;
  }
  return slice;
}

Result<AxisSlice> parse_axis(std::string_view part, std::size_t axis, std::int64_t size) {
  const std::vector<std::string_view> fields = split(part, ':');
  if (fields.size() > 3) return invalid_error("slice \"{}\": allowed: at most begin:end:step", part);
  if (fields.size() > 1) return parse_range(fields, part, size);
  TORNASOLE_TRY(const auto index, parse_number(fields[0], part));
  if (!index) return invalid_error("slice: axis {} has an empty part; allowed: an index, : or begin:end", axis);
  if (*index < -size || *index >= size) {
    return invalid_error("slice: index {} is outside axis {}, which has {} elements", *index, axis, size);
  }
  return AxisSlice{.begin = *index < 0 ? *index + size : *index, .step = 1, .count = 1, .is_index = true};
}

// One part per axis, "..." filled up with whole axes.
Result<std::vector<AxisSlice>> parse_slices(const Shape& shape, std::string_view text) {
  std::vector<std::string_view> parts = split(text, ',');
  const auto dots = std::find(parts.begin(), parts.end(), "...");
  const std::size_t named = parts.size() - (dots == parts.end() ? 0 : 1);
  if (named > shape.rank()) {
    return invalid_error("slice \"{}\" has {} parts, but the tensor has {} axes: {}", text, named, shape.rank(),
                         shape.to_string());
  }
  const auto at = dots == parts.end() ? parts.end() : parts.erase(dots);
  parts.insert(at, shape.rank() - named, ":");
  std::vector<AxisSlice> slices;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    TORNASOLE_TRY(const AxisSlice slice, parse_axis(parts[axis], axis, shape[axis]));
    slices.push_back(slice);
  }
  return slices;
}

}  // namespace

Result<Tensor> slice_of(const Tensor& tensor, std::string_view text) {
  const Shape& shape = tensor.shape();
  TORNASOLE_TRY(const std::vector<AxisSlice> slices, parse_slices(shape, text));
  std::vector<std::int64_t> dims;
  std::int64_t count = 1;
  for (const AxisSlice& slice : slices) {
    if (!slice.is_index) dims.push_back(slice.count);
    count *= slice.count;
  }
  const std::size_t size = dtype_size(tensor.dtype());
  std::string bytes;
  std::vector<std::string> texts;
  // Counts through the elements of the result like an odometer; the last axis runs fastest.
  std::vector<std::int64_t> digits(slices.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t position = 0;
    for (std::size_t axis = 0; axis < slices.size(); ++axis) {
      position = position * shape[axis] + slices[axis].begin + digits[axis] * slices[axis].step;
    }
    const auto from = static_cast<std::size_t>(position);
    if (tensor.dtype() == DType::kString) {
      texts.push_back(tensor.texts()[from]);
    } else {
      bytes += tensor.bytes().substr(from * size, size);
    }
    for (std::size_t axis = slices.size(); axis-- > 0;) {
      if (++digits[axis] < slices[axis].count) break;
      digits[axis] = 0;
    }
  }
  if (tensor.dtype() == DType::kString) return Tensor(std::move(texts), Shape(dims));
  return Tensor(tensor.dtype(), Shape(dims), std::move(bytes));
}

}  // namespace tornasole::cli
