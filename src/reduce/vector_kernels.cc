// Compiled once per instruction set by foreach_target.h. Which one runs is decided at the end of the file, from the
// processor alone: the engine must not need Highway's own library inside a training process.

#include "reduce/vector_kernels.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reduce/small_floats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/vector_kernels.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tornasole {
namespace reduce {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// kLanes doubles in as many registers as it takes.
using Doubles = hn::CappedTag<double, kLanes>;
inline constexpr std::size_t kWidth = hn::MaxLanes(Doubles());
inline constexpr std::size_t kParts = kLanes / kWidth;
using DoubleVector = hn::Vec<Doubles>;

HWY_INLINE DoubleVector load_doubles(const double* x) { return hn::LoadU(Doubles(), x); }
HWY_INLINE DoubleVector load_doubles(const float* x) {
  return hn::PromoteTo(Doubles(), hn::LoadU(hn::Rebind<float, Doubles>(), x));
}

struct Row {
  DoubleVector part[kParts];
  HWY_INLINE Row() {
    for (std::size_t p = 0; p < kParts; ++p) part[p] = hn::Zero(Doubles());
  }
  HWY_INLINE explicit Row(double value) {
    for (std::size_t p = 0; p < kParts; ++p) part[p] = hn::Set(Doubles(), value);
  }
  HWY_INLINE void store(Lanes& lanes) const {
    for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(part[p], Doubles(), lanes.data() + p * kWidth);
  }
};

// Neumaier's error term without a branch (Knuth's two-sum): exact whichever operand is larger.
HWY_INLINE void add_exactly(DoubleVector& sum, DoubleVector& dropped, DoubleVector x) {
  const DoubleVector next = hn::Add(sum, x);
  const DoubleVector part = hn::Sub(next, sum);
  dropped = hn::Add(dropped, hn::Add(hn::Sub(sum, hn::Sub(next, part)), hn::Sub(x, part)));
  sum = next;
}

// The smallest, largest and smallest magnitude, and the zeros. These do not depend on the order of the elements, so
// they use the full width of their own type.
template <typename T>
HWY_INLINE void find_extremes(const T* HWY_RESTRICT x, std::size_t count, BlockSums* HWY_RESTRICT out) {
  const hn::ScalableTag<T> tag;
  const std::size_t width = hn::Lanes(tag);
  T min = std::numeric_limits<T>::infinity(), max = -min, abs_min = min;
  std::size_t zeros = 0;
  std::size_t i = 0;
  if (count >= width) {
    auto min_v = hn::Set(tag, min), max_v = hn::Set(tag, max), abs_v = hn::Set(tag, min);
    for (; i + width <= count; i += width) {
      const auto v = hn::LoadU(tag, x + i);
      min_v = hn::Min(min_v, v);
      max_v = hn::Max(max_v, v);
      abs_v = hn::Min(abs_v, hn::Abs(v));
      zeros += hn::CountTrue(tag, hn::Eq(v, hn::Zero(tag)));
    }
    min = hn::GetLane(hn::MinOfLanes(tag, min_v));
    max = hn::GetLane(hn::MaxOfLanes(tag, max_v));
    abs_min = hn::GetLane(hn::MinOfLanes(tag, abs_v));
  }
  for (; i < count; ++i) {
    min = std::min(min, x[i]);
    max = std::max(max, x[i]);
    abs_min = std::min(abs_min, std::fabs(x[i]));
    zeros += x[i] == 0 ? 1 : 0;
  }
  out->min = static_cast<double>(min);
  out->max = static_cast<double>(max);
  out->abs_min = static_cast<double>(abs_min);
  out->zeros = zeros;
}

// Floats are added as doubles; so many of them lose nothing that a float would show. What doubles lose is kept.
template <typename T>
HWY_INLINE void sum_block(const T* HWY_RESTRICT x, std::size_t count, BlockSums* HWY_RESTRICT out) {
  constexpr bool kIsExact = std::is_same_v<T, double>;
  Row sum, abs_sum, squares, dropped;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const DoubleVector v = load_doubles(x + i + p * kWidth);
      if constexpr (kIsExact) {
        add_exactly(sum.part[p], dropped.part[p], v);
      } else {
        sum.part[p] = hn::Add(sum.part[p], v);
      }
      abs_sum.part[p] = hn::Add(abs_sum.part[p], hn::Abs(v));
      if constexpr (kIsExact) {
        squares.part[p] = hn::Add(squares.part[p], hn::Mul(v, v));
      } else {
        squares.part[p] = hn::MulAdd(v, v, squares.part[p]);  // the square of a float is exact: the bits are the same
      }
    }
  }
  sum.store(out->sum);
  abs_sum.store(out->abs_sum);
  squares.store(out->squares);
  dropped.store(out->dropped);
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const auto v = static_cast<double>(x[i]);
    if constexpr (kIsExact) {
      const double next = out->sum[lane] + v;
      const double part = next - out->sum[lane];
      out->dropped[lane] += (out->sum[lane] - (next - part)) + (v - part);
      out->sum[lane] = next;
    } else {
      out->sum[lane] += v;
    }
    out->abs_sum[lane] += std::fabs(v);
    out->squares[lane] += v * v;
  }
}

template <bool kOfAbsolute, typename T>
HWY_INLINE void deviate_block(const T* HWY_RESTRICT x, std::size_t count, double centre,
                              BlockDeviations* HWY_RESTRICT out) {
  Row sum, squares;
  const DoubleVector centre_v = hn::Set(Doubles(), centre);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t p = 0; p < kParts; ++p) {
      DoubleVector v = load_doubles(x + i + p * kWidth);
      if constexpr (kOfAbsolute) v = hn::Abs(v);
      v = hn::Sub(v, centre_v);
      sum.part[p] = hn::Add(sum.part[p], v);
      squares.part[p] = hn::Add(squares.part[p], hn::Mul(v, v));
    }
  }
  sum.store(out->sum);
  squares.store(out->squares);
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    auto v = static_cast<double>(x[i]);
    if constexpr (kOfAbsolute) v = std::fabs(v);
    v -= centre;
    out->sum[lane] += v;
    out->squares[lane] += v * v;
  }
}

HWY_ATTR void sum_floats(const float* x, std::size_t count, BlockSums* out) { sum_block(x, count, out); }
HWY_ATTR void summarize_doubles(const double* x, std::size_t count, BlockSums* out) {
  sum_block(x, count, out);
  find_extremes(x, count, out);
}
HWY_ATTR void summarize_floats(const float* x, std::size_t count, BlockSums* out) {
  sum_block(x, count, out);
  find_extremes(x, count, out);
}
HWY_ATTR void deviate_floats(const float* x, std::size_t count, double centre, bool of_absolute, BlockDeviations* out) {
  of_absolute ? deviate_block<true>(x, count, centre, out) : deviate_block<false>(x, count, centre, out);
}
HWY_ATTR void deviate_doubles(const double* x, std::size_t count, double centre, bool of_absolute,
                              BlockDeviations* out) {
  of_absolute ? deviate_block<true>(x, count, centre, out) : deviate_block<false>(x, count, centre, out);
}

inline constexpr std::uint64_t kMantissaBits = (std::uint64_t{1} << 52) - 1;
inline constexpr std::uint64_t kExponentOfOne = std::uint64_t{1023} << 52;

// A float is a normal double, so the exponent bits say it all.
HWY_ATTR void multiply_floats(const float* HWY_RESTRICT x, std::size_t count, BlockProduct* HWY_RESTRICT out) {
  using Bits = hn::RebindToUnsigned<Doubles>;
  const Bits bits_tag;
  Row mantissa(1.0);
  hn::Vec<Bits> exponent[kParts], sign = hn::Zero(bits_tag);
  for (std::size_t p = 0; p < kParts; ++p) exponent[p] = hn::Zero(bits_tag);
  const auto mantissa_mask = hn::Set(bits_tag, kMantissaBits), one = hn::Set(bits_tag, kExponentOfOne);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const auto bits = hn::BitCast(bits_tag, load_doubles(x + i + p * kWidth));
      sign = hn::Xor(sign, bits);
      exponent[p] = hn::Add(exponent[p], hn::ShiftRight<53>(hn::ShiftLeft<1>(bits)));
      const auto factor = hn::BitCast(Doubles(), hn::Or(hn::And(bits, mantissa_mask), one));
      mantissa.part[p] = hn::Mul(mantissa.part[p], factor);
    }
  }
  mantissa.store(out->mantissa);
  for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(exponent[p], bits_tag, out->exponent.data() + p * kWidth);
  std::array<std::uint64_t, kWidth> signs;
  hn::StoreU(sign, bits_tag, signs.data());
  out->sign = 0;
  for (const std::uint64_t one_sign : signs) out->sign ^= one_sign;
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x[i]));
    out->sign ^= bits;
    out->exponent[lane] += (bits << 1) >> 53;
    out->mantissa[lane] *= std::bit_cast<double>((bits & kMantissaBits) | kExponentOfOne);
  }
}

// Plain loops where the compiler vectorises them for each set by itself.
HWY_ATTR void widen_halves(const std::uint16_t* HWY_RESTRICT x, std::size_t count, float* HWY_RESTRICT out) {
  std::size_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<float> tag;
  const hn::Rebind<hwy::float16_t, decltype(tag)> half_tag;
  const hn::Rebind<std::uint16_t, decltype(tag)> bits_tag;
  for (; i + hn::Lanes(tag) <= count; i += hn::Lanes(tag)) {
    hn::StoreU(hn::PromoteTo(tag, hn::BitCast(half_tag, hn::LoadU(bits_tag, x + i))), tag, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = float_from_half(x[i]);
}
HWY_ATTR void widen_bfloat16s(const std::uint16_t* HWY_RESTRICT x, std::size_t count, float* HWY_RESTRICT out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float_from_bfloat16(x[i]);
}

template <typename T>
HWY_INLINE bool widen(const T* HWY_RESTRICT x, std::size_t count, double* HWY_RESTRICT out) {
  if constexpr (sizeof(T) == 8) {
    // The bits of the magnitude, one less for negative numbers: whatever is set anywhere is set in the end.
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::int64_t>(x[i]);
      bits |=
          std::is_signed_v<T> ? static_cast<std::uint64_t>(value ^ (value >> 63)) : static_cast<std::uint64_t>(value);
    }
    if ((bits >> 53) != 0) return false;
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<double>(x[i]);
  return true;
}

HWY_ATTR bool widen_integers(DType dtype, const void* x, std::size_t count, double* out) {
  switch (dtype) {
    case DType::kInt8: return widen(static_cast<const std::int8_t*>(x), count, out);
    case DType::kInt16: return widen(static_cast<const std::int16_t*>(x), count, out);
    case DType::kInt32: return widen(static_cast<const std::int32_t*>(x), count, out);
    case DType::kUint8: return widen(static_cast<const std::uint8_t*>(x), count, out);
    case DType::kUint16: return widen(static_cast<const std::uint16_t*>(x), count, out);
    case DType::kUint32: return widen(static_cast<const std::uint32_t*>(x), count, out);
    case DType::kUint64: return widen(static_cast<const std::uint64_t*>(x), count, out);
    case DType::kBool: {
      const auto* bytes = static_cast<const std::uint8_t*>(x);
      for (std::size_t i = 0; i < count; ++i) out[i] = bytes[i] != 0 ? 1 : 0;
      return true;
    }
    default: return widen(static_cast<const std::int64_t*>(x), count, out);
  }
}

// The squares of floats neither overflow nor vanish in a double.
HWY_ATTR void take_moduli(const std::complex<float>* HWY_RESTRICT x, std::size_t count, double* HWY_RESTRICT out) {
  const auto* parts = reinterpret_cast<const float*>(x);
  for (std::size_t i = 0; i < count; ++i) {
    const auto real = static_cast<double>(parts[2 * i]), imaginary = static_cast<double>(parts[2 * i + 1]);
    out[i] = std::sqrt(real * real + imaginary * imaginary);
  }
}

// Keys in the order of the floats: negative ones reversed, below the positive ones; of magnitudes, the bits themselves.
HWY_ATTR std::size_t partition_keys(const std::uint32_t* HWY_RESTRICT bits, std::size_t count, std::uint32_t low,
                                    std::uint32_t high, bool of_absolute, std::uint32_t* HWY_RESTRICT out,
                                    std::size_t* kept) {
  const hn::ScalableTag<std::uint32_t> tag;
  const hn::RebindToSigned<decltype(tag)> signed_tag;
  const std::size_t width = hn::Lanes(tag);
  // Signed keys: comparing unsigned numbers is not an instruction everywhere. The flip of the top bit is undone on the
  // way out.
  const auto top = hn::Set(tag, 0x80000000U);
  const auto rest = hn::Set(tag, 0x7FFFFFFFU);
  const auto low_v = hn::Set(signed_tag, static_cast<std::int32_t>(low ^ 0x80000000U));
  const auto high_v = hn::Set(signed_tag, static_cast<std::int32_t>(high ^ 0x80000000U));
  std::size_t below = 0, stored = *kept, i = 0;
  const auto take = [&](hn::Vec<decltype(signed_tag)> key) HWY_ATTR {
    below += hn::CountTrue(signed_tag, hn::Lt(key, low_v));
    const auto inside = hn::AndNot(hn::Lt(key, low_v), hn::Not(hn::Gt(key, high_v)));
    if (hn::AllFalse(signed_tag, inside)) return;
    stored +=
        hn::CompressBlendedStore(hn::Xor(hn::BitCast(tag, key), top), hn::RebindMask(tag, inside), tag, out + stored);
  };
  if (of_absolute) {
    for (; i + width <= count; i += width) {
      take(hn::BitCast(signed_tag, hn::Xor(hn::And(hn::LoadU(tag, bits + i), rest), top)));
    }
  } else {
    for (; i + width <= count; i += width) {
      const auto v = hn::LoadU(signed_tag, reinterpret_cast<const std::int32_t*>(bits) + i);
      const auto flip = hn::And(hn::BitCast(tag, hn::ShiftRight<31>(v)), rest);
      take(hn::BitCast(signed_tag, hn::Xor(hn::BitCast(tag, v), flip)));
    }
  }
  for (; i < count; ++i) {
    const std::uint32_t b = bits[i];
    const std::uint32_t key = of_absolute ? b & 0x7FFFFFFFU : (b >> 31) != 0 ? ~b : b | 0x80000000U;
    below += key < low ? 1 : 0;
    if (key >= low && key <= high) out[stored++] = key;
  }
  *kept = stored;
  return below;
}

HWY_ATTR void compare_floats(const float* HWY_RESTRICT now, const float* HWY_RESTRICT before, std::size_t count,
                             BlockPairSums* HWY_RESTRICT out) {
  Row now_squares, before_squares, difference_squares, product;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const DoubleVector a = load_doubles(now + i + p * kWidth), b = load_doubles(before + i + p * kWidth);
      const DoubleVector d = hn::Sub(a, b);
      now_squares.part[p] = hn::Add(now_squares.part[p], hn::Mul(a, a));
      before_squares.part[p] = hn::Add(before_squares.part[p], hn::Mul(b, b));
      difference_squares.part[p] = hn::Add(difference_squares.part[p], hn::Mul(d, d));
      product.part[p] = hn::Add(product.part[p], hn::Mul(a, b));
    }
  }
  now_squares.store(out->now);
  before_squares.store(out->before);
  difference_squares.store(out->difference);
  product.store(out->product);
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const auto a = static_cast<double>(now[i]), b = static_cast<double>(before[i]);
    out->now[lane] += a * a;
    out->before[lane] += b * b;
    out->difference[lane] += (a - b) * (a - b);
    out->product[lane] += a * b;
  }
}

HWY_ATTR bool extend_range(const float* HWY_RESTRICT x, std::size_t count, float* min, float* max) {
  const hn::ScalableTag<float> tag;
  const std::size_t width = hn::Lanes(tag);
  auto min_v = hn::Set(tag, *min), max_v = hn::Set(tag, *max);
  auto rest_v = hn::Zero(tag);  // x - x is zero of every number, and NaN of what is none
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    const auto v = hn::LoadU(tag, x + i);
    min_v = hn::Min(min_v, v);
    max_v = hn::Max(max_v, v);
    rest_v = hn::Add(rest_v, hn::Sub(v, v));
  }
  *min = hn::GetLane(hn::MinOfLanes(tag, min_v));
  *max = hn::GetLane(hn::MaxOfLanes(tag, max_v));
  float rest = hn::GetLane(hn::SumOfLanes(tag, rest_v));
  for (; i < count; ++i) {
    *min = std::min(*min, x[i]);
    *max = std::max(*max, x[i]);
    rest += x[i] - x[i];
  }
  return rest == 0;
}

HWY_ATTR void classify_floats(const float* HWY_RESTRICT x, std::size_t count, float low, float scale,
                              std::uint16_t last, std::uint16_t* HWY_RESTRICT out) {
  const hn::ScalableTag<float> tag;
  const hn::Rebind<std::int32_t, decltype(tag)> int_tag;
  const hn::Rebind<std::uint16_t, decltype(tag)> class_tag;
  const std::size_t width = hn::Lanes(tag);
  const auto low_v = hn::Set(tag, low), scale_v = hn::Set(tag, scale);
  const auto last_v = hn::Set(int_tag, last);
  std::size_t i = 0;
  for (; i + width <= count; i += width) {
    const auto place = hn::ConvertTo(int_tag, hn::Mul(hn::Sub(hn::LoadU(tag, x + i), low_v), scale_v));
    hn::StoreU(hn::DemoteTo(class_tag, hn::Min(place, last_v)), class_tag, out + i);
  }
  for (; i < count; ++i) {
    const auto place = static_cast<std::int32_t>((x[i] - low) * scale);
    out[i] = static_cast<std::uint16_t>(std::min<std::int32_t>(place, last));
  }
}

HWY_ATTR void add_to_units(const float* HWY_RESTRICT x, std::size_t count, const UnitSums& units) {
  double* HWY_RESTRICT sum = units.sum;
  double* HWY_RESTRICT squares = units.squares;
  double* HWY_RESTRICT magnitudes = units.magnitudes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto v = static_cast<double>(x[i]);
    sum[i] += v;
    squares[i] += v * v;
    magnitudes[i] += std::fabs(v);
  }
}
HWY_ATTR void count_active_units(const float* HWY_RESTRICT x, std::size_t count, std::uint32_t* HWY_RESTRICT units) {
  for (std::size_t i = 0; i < count; ++i) units[i] += x[i] > 0 ? 1 : 0;
}
HWY_ATTR std::size_t count_active(const float* HWY_RESTRICT x, std::size_t count) {
  std::uint32_t active = 0;
  for (std::size_t i = 0; i < count; ++i) active += x[i] > 0 ? 1 : 0;
  return active;
}

constexpr VectorKernels kKernels = {
    HWY_STR(HWY_NAMESPACE), sum_floats,   summarize_floats, summarize_doubles, deviate_floats,     deviate_doubles,
    multiply_floats,        widen_halves, widen_bfloat16s,  widen_integers,    take_moduli,        partition_keys,
    compare_floats,         extend_range, classify_floats,  add_to_units,      count_active_units, count_active};

}  // namespace HWY_NAMESPACE
}  // namespace reduce
}  // namespace tornasole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tornasole::reduce {
namespace {

// Best first.
struct Candidate {
  const VectorKernels* kernels;
  bool is_supported;
};

#if HWY_ARCH_X86
bool has_sse4() noexcept {
  return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") &&
         __builtin_cpu_supports("pclmul");
}
bool has_avx2() noexcept {
  return has_sse4() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
bool has_avx3() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif

struct Supported {
  std::array<const VectorKernels*, 8> list = {};
  std::size_t count = 0;
  Supported() noexcept {
    const Candidate candidates[] = {
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX3)
        {&N_AVX3::kKernels, has_avx3()},
#endif
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX2)
        {&N_AVX2::kKernels, has_avx2()},
#endif
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_SSE4)
        {&N_SSE4::kKernels, has_sse4()},
#endif
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_SSSE3)
        {&N_SSSE3::kKernels, __builtin_cpu_supports("ssse3") != 0},
#endif
        // What the compiler may use without asking: the 128-bit emulation on plain x86-64, NEON on Arm.
        {&HWY_STATIC_DISPATCH(kKernels), true},
    };
    for (const Candidate& candidate : candidates) {
      if (candidate.is_supported && (count == 0 || list[count - 1] != candidate.kernels)) {
        list[count++] = candidate.kernels;
      }
    }
  }
};

const Supported& supported() noexcept {
  static const Supported all;
  return all;
}

std::atomic<const VectorKernels*> chosen = nullptr;

}  // namespace

const VectorKernels& vector_kernels() noexcept {
  const VectorKernels* kernels = chosen.load(std::memory_order_relaxed);
  if (kernels == nullptr) {
    kernels = supported().list[0];
    chosen.store(kernels, std::memory_order_relaxed);
  }
  return *kernels;
}

std::span<const VectorKernels* const> supported_vector_kernels() noexcept {
  return {supported().list.data(), supported().count};
}

void use_vector_kernels(const VectorKernels& kernels) noexcept { chosen.store(&kernels, std::memory_order_relaxed); }

}  // namespace tornasole::reduce
#endif  // HWY_ONCE
