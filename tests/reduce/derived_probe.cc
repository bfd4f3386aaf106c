// derived_probe: answers numpy_derived_check.py. Standard input holds tensors, one after the other:
//
//   "<dtype code> <rank> <extent>... <stride in bytes>... <offset> <buffer bytes>\n", then the buffer
//
// For each it prints one line per statistic, "<name> <dtype> <rank> <extent>... <hex of the values>", or "<name>
// error"; histograms as "edges" and "counts" of 10 bins over the elements' own range; and last an empty line.
// Statistics that compare take the tensor before with the same shape, or the tensor itself.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "reduce/derived.h"
#include "reduce/histogram.h"
#include "reduce/make_tensor.h"

namespace {

using namespace tornasole;

void print_tensor(const char* name, const Result<Tensor>& value) {
  if (!value.ok()) {
    std::printf("%s error\n", name);
    return;
  }
  std::printf("%s %s %zu", name, std::string(dtype_name(value->dtype())).c_str(), value->shape().rank());
  for (const std::int64_t extent : value->shape().dims()) std::printf(" %lld", static_cast<long long>(extent));
  std::printf(" x");
  for (const char byte : value->bytes()) std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  std::printf("\n");
}

template <typename T>
Result<Tensor> as_tensor(const std::vector<T>& values) {
  return reduce::make_tensor<T>(values, Shape{static_cast<std::int64_t>(values.size())});
}

void print_answer(const TensorView& view, const TensorView& before) {
  print_tensor("counts", reduce::counts(view));
  print_tensor("unit_activity", reduce::unit_activity(view));
  print_tensor("unit_range", reduce::unit_range(view, {-1, 1.5}));
  print_tensor("across_samples", reduce::across_samples(view));
  print_tensor("update", reduce::update(view, before));
  print_tensor("cosine_previous", reduce::cosine_previous(view, before));
  print_tensor("quantiles", reduce::quantiles(view));
  print_tensor("classes", reduce::class_counts(view));
  const auto linear = reduce::linear_histogram(view, 10);
  print_tensor("edges", linear.ok() ? as_tensor(linear->edges) : Result<Tensor>(linear.error()));
  print_tensor("counts_of_bins", linear.ok() ? as_tensor(linear->counts) : Result<Tensor>(linear.error()));
  const auto board = reduce::tensorboard_histogram(view);
  print_tensor("limits", board.ok() ? as_tensor(board->bucket_limit) : Result<Tensor>(board.error()));
  print_tensor("buckets", board.ok() ? as_tensor(board->bucket) : Result<Tensor>(board.error()));
  for (const DType target : {DType::kFloat16}) {
    const auto loss = reduce::cast_loss(view, target);
    print_tensor("cast_loss", loss.ok() ? as_tensor(std::vector<std::int64_t>{loss->underflow, loss->overflow})
                                        : Result<Tensor>(loss.error()));
  }
  std::printf("\n");
}

struct Held {
  std::string buffer;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape, strides;
  std::size_t offset = 0;
  TensorView view() const { return {dtype, buffer.data() + offset, Shape(shape), strides}; }
};

// Nothing at the end of the input or when it is not as described.
std::optional<Held> read_next() {
  Held held;
  unsigned code = 0;
  std::size_t rank = 0;
  if (!(std::cin >> code >> rank) || rank > 64) return std::nullopt;
  held.dtype = static_cast<DType>(code);
  held.shape.resize(rank);
  held.strides.resize(rank);
  for (std::int64_t& extent : held.shape) std::cin >> extent;
  for (std::int64_t& stride : held.strides) std::cin >> stride;
  std::int64_t size = 0;
  if (!(std::cin >> held.offset >> size) || size < 0) return std::nullopt;
  std::cin.ignore(1);
  held.buffer.resize(static_cast<std::size_t>(size) + 1);  // never a null pointer, also for no bytes
  if (size > 0 && !std::cin.read(held.buffer.data(), size)) return std::nullopt;
  return held;
}

}  // namespace

int main() {
  std::optional<Held> before;
  while (auto held = read_next()) {
    const bool is_pair = before && before->dtype == held->dtype && before->shape == held->shape;
    print_answer(held->view(), is_pair ? before->view() : held->view());
    before = std::move(held);
  }
  return std::cin.eof() ? 0 : 1;
}
