#include "trial/index_parser.h"

#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "format/paths.h"

namespace tornasole::trial {
namespace {

// Beyond this many a step is no usual one, and remembering its names would cost more than it saves.
constexpr std::size_t kMaxExpected = 65'536;

bool may_be_reduction(std::string_view name) noexcept { return name.find("/reductions/") != std::string_view::npos; }

}  // namespace

Series IndexParser::find_series(std::string_view name) {
  const std::size_t place = series_.size();
  if (place < expected_.size() && expected_[place].name == name) return expected_[place].series;

  std::uint32_t kind = kValueSeries;
  std::string_view tensor = name;
  std::optional<format::ReductionName> reduced;
  if (may_be_reduction(name)) reduced = format::parse_reduction_tensor_name(name);
  if (reduced) {
    tensor = reduced->tensor;
    const auto known = parse_reduction_kind(reduced->op);
    kind = known ? kind_of(series_of(0, Reduction{*known, reduced->of_absolute})) : kUnknownReductionSeries;
  }
  if (tables_.names.size() >= kMaxTensors) is_too_much_ = true;
  const Series series = is_too_much_ ? 0 : series_of(tables_.names.intern(tensor), kind);
  if (place < kMaxExpected) {
    if (place >= expected_.size()) expected_.resize(place + 1);
    expected_[place].name = name;
    expected_[place].series = series;
  }
  return series;
}

void IndexParser::on_tensor(const Tensor& tensor) {
  const Series series = find_series(tensor.name);
  Location location{.offset_and_flag = tensor.offset,
                    .length_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(tensor.length, UINT32_MAX))};
  if (tensor.crc) {
    location.offset_and_flag |= Location::kHasCrc;
    location.crc = *tensor.crc;
  }
  series_.push_back(series);
  found_.push_back(location);
}

void IndexParser::on_shape(const ShapeRecord& record) {
  if (tables_.names.size() >= kMaxTensors) {
    is_too_much_ = true;
    return;
  }
  const std::uint32_t tensor = tables_.names.intern(record.name);
  tables_.original_names.set(tensor, record.name, record.original_name);
  series_.push_back(series_of(tensor, kShapeSeries));
  found_.push_back({.offset_and_flag = tables_.shapes.intern(record.shape)});
}

void IndexParser::forget(bool shapes) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < series_.size(); ++i) {
    if ((kind_of(series_[i]) == kShapeSeries) == shapes) continue;
    series_[kept] = series_[i];
    found_[kept++] = found_[i];
  }
  series_.resize(kept);
  found_.resize(kept);
}

// The same name twice: the later entry counts.
void IndexParser::order_entries() {
  if (series_ == last_series_ && !order_.empty()) return;
  order_.resize(series_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::uint32_t left, std::uint32_t right) { return series_[left] < series_[right]; });
  std::size_t kept = 0;
  for (const std::uint32_t place : order_) {
    if (kept > 0 && series_[order_[kept - 1]] == series_[place]) --kept;
    order_[kept++] = place;
  }
  order_.resize(kept);
  std::vector<Series> sorted(kept);
  for (std::size_t i = 0; i < kept; ++i) sorted[i] = series_[order_[i]];
  layout_ = tables_.layouts.intern(sorted);
  last_series_ = series_;
}

Result<ParsedIndex> IndexParser::parse(Bytes& text) {
  series_.clear();
  found_.clear();
  is_too_much_ = false;
  TORNASOLE_TRY(format::Index index, decoder_.decode(text, *this));
  if (is_too_much_) return corrupt_error("more than {} tensor names in one trial", kMaxTensors);
  order_entries();
  ParsedIndex parsed{.mode_step = index.mode_step,
                     .locations = arena_.allocate(order_.size()),
                     .layout = layout_,
                     .mode = index.mode,
                     .is_partial = index.is_partial,
                     .event_file = std::move(index.event_file),
                     .facts = {.optimizer_step = index.optimizer_step,
                               .training = index.training,
                               .grad_enabled = index.grad_enabled,
                               .backward_in_eval = index.backward_in_eval,
                               .grad_scale = index.grad_scale}};
  for (std::size_t i = 0; i < order_.size(); ++i) parsed.locations[i] = found_[order_[i]];
  return parsed;
}

}  // namespace tornasole::trial
