#include "rules/tensor_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tornasole::rules {

const Tensor* numeric_value(const StepTensor& tensor, Findings& findings) {
  const Tensor* value = tensor.value.get();
  if (value == nullptr) {
    findings.skip(tensor.error ? "unreadable" : "no value");
  } else if (value->dtype() == DType::kString) {
    findings.skip("text");
  } else if (reduce::is_complex_dtype(value->dtype())) {
    findings.skip("complex");
  } else if (value->element_count() <= 0) {
    findings.skip("empty");
  } else {
    return value;
  }
  return nullptr;
}

std::vector<double> to_doubles(const Tensor& value) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<std::size_t>(value.element_count()));
  for_each_number(value, [&](double number) {
    numbers.push_back(number);
    return true;
  });
  return numbers;
}

double quantile(std::span<double> numbers, double q) {
  if (numbers.empty() || std::ranges::any_of(numbers, [](double x) { return std::isnan(x); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double position = static_cast<double>(numbers.size() - 1) * q;
  const auto lower = static_cast<std::ptrdiff_t>(position);
  const auto at = numbers.begin() + lower;
  std::ranges::nth_element(numbers, at);
  const double fraction = position - static_cast<double>(lower);
  if (fraction == 0 || at + 1 == numbers.end()) return *at;
  const double upper = *std::min_element(at + 1, numbers.end());
  return *at == upper ? upper : *at + fraction * (upper - *at);
}

bool all_close(const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  if (a.shape() != b.shape()) return false;
  const std::vector<double> others = to_doubles(a);
  std::size_t at = 0;
  return for_each_number(b, [&](double own) {
    const double other = others[at++];
    if (other == own) return true;  // infinities too
    if (std::isnan(other) || std::isnan(own)) return tolerance.equal_nan && std::isnan(other) && std::isnan(own);
    if (std::isinf(other) || std::isinf(own)) return false;
    return std::fabs(other - own) <= tolerance.absolute + tolerance.relative * std::fabs(own);
  });
}

}  // namespace tornasole::rules
