// reduce_probe: answers numpy_check.py. Standard input holds tensors, one after the other:
//
//   "<dtype code> <rank> <extent>... <stride in bytes>... <offset> <buffer bytes>\n", then the buffer
//
// For each it prints one line per reduction, "<name> <dtype> <hex of the value>", in the order of the kinds, plain then
// absolute; "<name> skipped" where it is not defined; and last "non_finite <0 or 1>" and an empty line.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "reduce/reduce.h"

namespace {

using namespace tornasole;

void print_answer(const TensorView& view) {
  for (const ReductionKind kind : kAllReductionKinds) {
    for (const bool of_absolute : {false, true}) {
      const Reduction wanted[] = {{kind, of_absolute}};
      const reduce::Reduced got = reduce::reduce(view, wanted);
      const std::string name = reduction_name(wanted[0]);
      if (got.values.empty()) {
        std::printf("%s skipped\n", name.c_str());
        continue;
      }
      const reduce::Scalar& value = got.values[0].value;
      std::printf("%s %s ", name.c_str(), std::string(dtype_name(value.dtype())).c_str());
      for (const char byte : value.bytes())
        std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      std::printf("\n");
    }
  }
  std::printf("non_finite %d\n\n", reduce::has_non_finite(view) ? 1 : 0);
}

// False at the end of the input or when it is not as described.
bool answer_next() {
  unsigned code = 0;
  std::size_t rank = 0;
  if (!(std::cin >> code >> rank) || rank > 64) return false;
  std::vector<std::int64_t> shape(rank), strides(rank);
  for (std::int64_t& extent : shape) std::cin >> extent;
  for (std::int64_t& stride : strides) std::cin >> stride;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  if (!(std::cin >> offset >> size) || size < 0 || offset < 0) return false;
  std::cin.ignore(1);
  std::string buffer(static_cast<std::size_t>(size) + 1, '\0');  // never a null pointer, also for no bytes
  if (size > 0 && !std::cin.read(buffer.data(), size)) return false;
  print_answer(TensorView(static_cast<DType>(code), buffer.data() + offset, Shape(shape), strides));
  return true;
}

}  // namespace

int main() {
  while (answer_next()) {
  }
  return std::cin.eof() ? 0 : 1;
}
