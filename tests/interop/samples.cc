#include "interop/samples.h"

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

namespace interop {
namespace {

using tornasole::DType;

// A binary float of `exponent_bits` and `mantissa_bits`, by the definition of the format.
double decode_small(unsigned code, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned mantissa = code & ((1U << mantissa_bits) - 1);
  const int exponent = static_cast<int>((code >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double sign = (code >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  if (has_infinity && exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

double decode_float8(DType dtype, unsigned code) {
  if (dtype == DType::kFloat8E5m2) return decode_small(code, 5, 2, /*has_infinity=*/true);
  return (code & 0x7FU) == 0x7FU ? NAN : decode_small(code, 4, 3, /*has_infinity=*/false);
}

template <typename From, typename To, typename Convert>
Sample convert(const Sample& sample, Convert conversion) {
  std::vector<To> values;
  for (std::size_t at = 0; at < sample.bytes.size(); at += sizeof(From)) {
    From value;
    std::memcpy(&value, sample.bytes.data() + at, sizeof value);
    values.push_back(conversion(value));
  }
  return sample_of(values, sample.shape);
}

template <typename From, typename To>
Sample convert(const Sample& sample) {
  return convert<From, To>(sample, [](From value) { return static_cast<To>(value); });
}

}  // namespace

Sample random_sample(DType dtype, std::vector<std::int64_t> shape, std::mt19937_64* random) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  Sample sample{dtype, std::move(shape), std::string(count * tornasole::dtype_size(dtype), '\0')};
  for (char& byte : sample.bytes) byte = static_cast<char>(dtype == DType::kBool ? (*random)() % 2 : (*random)());
  return sample;
}

Sample all_patterns(DType dtype) {
  Sample sample{.dtype = dtype};
  if (dtype == DType::kBfloat16) {
    for (unsigned code = 0; code < 0x10000; ++code) {
      sample.bytes += static_cast<char>(code & 0xFF);
      sample.bytes += static_cast<char>(code >> 8);
    }
    sample.shape = {256, 256};
    return sample;
  }
  for (unsigned code = 0; code < 256; ++code) {
    if (!std::isnan(decode_float8(dtype, code))) sample.bytes += static_cast<char>(code);
  }
  sample.shape = {static_cast<std::int64_t>(sample.bytes.size())};
  return sample;
}

Sample exact_sample(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return sample_of<float>({-4, 3}, {2});
    case DType::kFloat64: return sample_of<double>({-4, 3}, {2, 1});
    case DType::kFloat16: return {DType::kFloat16, {2}, std::string("\x00\xC4\x00\x42", 4)};
    case DType::kBfloat16: return {DType::kBfloat16, {1, 2}, std::string("\x80\xC0\x40\x40", 4)};
    case DType::kInt8: return sample_of<std::int8_t>({-4, 3}, {2});
    case DType::kInt16: return sample_of<std::int16_t>({-4, 3}, {2});
    case DType::kInt32: return sample_of<std::int32_t>({-4, 3}, {2});
    case DType::kInt64: return sample_of<std::int64_t>({-4, 3}, {2});
    case DType::kUint8: return sample_of<std::uint8_t>({4, 3}, {2});
    case DType::kUint32: return sample_of<std::uint32_t>({4, 3}, {2});
    case DType::kUint64: return sample_of<std::uint64_t>({4, 3}, {2});
    case DType::kBool: return {DType::kBool, {2}, std::string("\x01\x00", 2)};
    default: return {};
  }
}

tornasole::TensorView view_of(const Sample& sample) {
  return {sample.dtype, sample.bytes.data(), tornasole::Shape(sample.shape)};
}

std::string smdebug_dtype(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kFloat64: return "float64";
    case DType::kInt32: return "int32";
    case DType::kUint8: return "uint8";
    case DType::kInt8: return "uint8";  // its mistake
    case DType::kInt64: return "int64";
    case DType::kBool: return "bool";
    case DType::kComplex128: return "complex128";
    case DType::kFloat16: return "float16";
    default: return "";
  }
}

Sample widened(const Sample& sample) {
  switch (sample.dtype) {
    case DType::kInt8: return convert<std::int8_t, std::int32_t>(sample);
    case DType::kInt16: return convert<std::int16_t, std::int32_t>(sample);
    case DType::kUint16: return convert<std::uint16_t, std::int32_t>(sample);
    case DType::kUint32: return convert<std::uint32_t, std::int64_t>(sample);
    case DType::kUint64: return convert<std::uint64_t, std::int64_t>(sample);
    case DType::kComplex64: return convert<std::complex<float>, std::complex<double>>(sample);
    case DType::kBfloat16:
      return convert<std::uint16_t, float>(
          sample, [](std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); });
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn:
      return convert<std::uint8_t, float>(
          sample, [&](std::uint8_t code) { return static_cast<float>(decode_float8(sample.dtype, code)); });
    default: return sample;
  }
}

}  // namespace interop
