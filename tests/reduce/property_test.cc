// reduce() against the oracle: every type, every reduction, sizes from 0, any layout, hostile values.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "reduce/reduce.h"
#include "reduce/reference.h"

namespace tornasole::reduce {
namespace {

std::vector<Reduction> every_reduction() {
  std::vector<Reduction> all;
  for (const ReductionKind kind : kAllReductionKinds) {
    all.push_back({kind, false});
    all.push_back({kind, true});
  }
  return all;
}

enum class Fill { kAnyBits, kModerate, kExtremes, kConstant, kNanSomewhere, kInfinitySomewhere, kBothInfinities };
constexpr Fill kAllFills[] = {Fill::kAnyBits,      Fill::kModerate,          Fill::kExtremes,      Fill::kConstant,
                              Fill::kNanSomewhere, Fill::kInfinitySomewhere, Fill::kBothInfinities};

struct FloatBits {
  std::uint64_t nan, infinity, largest, smallest, one;
};
FloatBits bits_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return {0x7FF8000000000001U, 0x7FF0000000000000U, 0x7FEFFFFFFFFFFFFFU, 1, 0x3FF0000000000000U};
    case DType::kFloat16: return {0x7E00, 0x7C00, 0x7BFF, 1, 0x3C00};
    case DType::kBfloat16: return {0x7FC0, 0x7F80, 0x7F7F, 1, 0x3F80};
    case DType::kFloat8E5m2: return {0x7E, 0x7C, 0x7B, 1, 0x3C};
    case DType::kFloat8E4m3fn: return {0x7F, 0x7E, 0x7E, 1, 0x38};  // there is no infinity: the largest value
    default: return {0x7FC00000, 0x7F800000, 0x7F7FFFFF, 1, 0x3F800000};
  }
}

class Maker {
 public:
  explicit Maker(std::uint32_t seed) : random_(seed) {}

  // Parts are what a complex number has two of; everything else is one part.
  Tensor tensor(DType dtype, std::int64_t count, Fill fill) {
    const std::size_t parts_per_element = is_complex(dtype) ? 2 : 1;
    const std::size_t size = dtype_size(dtype) / parts_per_element;
    const std::size_t parts = static_cast<std::size_t>(count) * parts_per_element;
    std::string bytes(parts * size, '\0');
    for (std::size_t i = 0; i < parts; ++i) put(bytes, i, size, part(dtype, size, fill));
    const FloatBits special = bits_of(dtype);
    if (!is_integer(dtype) && parts > 0) {
      const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
      if (fill == Fill::kNanSomewhere) put(bytes, below(parts), size, special.nan);
      if (fill == Fill::kInfinitySomewhere) put(bytes, below(parts), size, special.infinity | (coin() ? sign : 0));
      if (fill == Fill::kBothInfinities) {
        put(bytes, below(parts), size, special.infinity);
        put(bytes, below(parts), size, special.infinity | sign);
      }
    }
    return {dtype, Shape{count}, std::move(bytes)};
  }
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool coin() { return random_() % 2 == 0; }

 private:
  static void put(std::string& bytes, std::size_t at, std::size_t size, std::uint64_t bits) {
    std::memcpy(bytes.data() + at * size, &bits, size);
  }
  std::uint64_t part(DType dtype, std::size_t size, Fill fill) {
    const std::uint64_t any = (static_cast<std::uint64_t>(random_()) << 32) | random_();
    if (fill == Fill::kAnyBits || (is_integer(dtype) && fill != Fill::kExtremes && fill != Fill::kConstant)) return any;
    if (dtype == DType::kBool) return any & 1;
    const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
    if (is_integer(dtype)) {
      const std::uint64_t extremes[] = {0, 1, sign - 1, sign, ~std::uint64_t{0}, sign + 1};
      return fill == Fill::kConstant ? sign | 5 : extremes[below(6)];
    }
    const FloatBits special = bits_of(dtype);
    if (fill == Fill::kConstant) return special.one + 1;
    const std::uint64_t extremes[] = {0, special.largest, special.smallest, special.one, special.largest - 1};
    if (fill == Fill::kExtremes) return extremes[below(5)] | (coin() ? sign : 0);
    // Around one: some bits of the mantissa and the lowest exponent bits, either sign.
    const int wobble = size == 1 ? 3 : size == 2 ? 8 : size == 4 ? 24 : 53;
    return (special.one ^ (any & ((std::uint64_t{1} << wobble) - 1))) | (coin() ? sign : 0);
  }
  std::mt19937 random_;
};

void expect_as_reference(const TensorView& view, const Tensor& dense, const std::string& what) {
  const std::vector<Reduction> all = every_reduction();
  const Reduced reduced = reduce(view, all);
  std::size_t at = 0;
  std::size_t skipped = 0;
  for (const Reduction reduction : all) {
    const auto want = expected(dense, reduction);
    const std::string where = what + " " + reduction_name(reduction);
    if (!want) {
      ASSERT_LT(skipped, reduced.skipped.size()) << where;
      EXPECT_EQ(reduced.skipped[skipped++], reduction) << where;
      continue;
    }
    ASSERT_LT(at, reduced.values.size()) << where;
    const ReducedValue& got = reduced.values[at++];
    EXPECT_EQ(got.reduction, reduction) << where;
    // Of a complex product that overflows, or has infinite factors, the smaller part is what the arithmetic leaves.
    const bool is_complex_product =
        reduction.kind == ReductionKind::kProd && !reduction.of_absolute && is_complex(dense.dtype());
    if (is_complex_product && !(std::isfinite(want->value.real()) && std::isfinite(want->value.imag()))) {
      EXPECT_TRUE(has_non_finite(TensorView(got.value.dtype(), got.value.bytes().data(), Shape{1}))) << where;
      continue;
    }
    EXPECT_EQ(difference(got.value.to_tensor(), *want), "") << where;
  }
  EXPECT_EQ(at, reduced.values.size()) << what;
  EXPECT_EQ(skipped, reduced.skipped.size()) << what;
}

TEST(ReduceProperties, EveryTypeSizeAndFillAgreesWithTheReference) {
  Maker maker(1);
  for (const DType dtype : kNumericDTypes) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      for (const Fill fill : kAllFills) {
        const Tensor tensor = maker.tensor(dtype, count, fill);
        const TensorView view(dtype, tensor.bytes().data(), tensor.shape());
        expect_as_reference(view, tensor,
                            std::string(dtype_name(dtype)) + " n=" + std::to_string(count) + " fill " +
                                std::to_string(static_cast<int>(fill)));
        if (HasFailure()) return;
      }
    }
  }
}

void expect_some_as_reference(const Tensor& tensor, std::span<const Reduction> wanted) {
  const TensorView view(tensor.dtype(), tensor.bytes().data(), tensor.shape());
  for (const ReducedValue& got : reduce(view, wanted).values) {
    const auto want = expected(tensor, got.reduction);
    ASSERT_TRUE(want);
    EXPECT_EQ(difference(got.value.to_tensor(), *want), "")
        << dtype_name(tensor.dtype()) << " n=" << tensor.element_count() << " " << reduction_name(got.reduction);
  }
}

TEST(ReduceProperties, TensorsOfManyBlocksAgreeWithTheReference) {
  Maker maker(2);
  const std::vector<Reduction> all = every_reduction();
  for (const DType dtype : kNumericDTypes) {
    for (const std::int64_t count : {2047, 2048, 2049, 4100}) {
      for (const Fill fill : {Fill::kModerate, Fill::kConstant, Fill::kNanSomewhere}) {
        expect_some_as_reference(maker.tensor(dtype, count, fill), all);
      }
    }
  }
}

// Enough elements for the selection that keeps no copy.
TEST(ReduceProperties, MediansOfManyElementsAgreeWithTheReference) {
  Maker maker(5);
  const Reduction wanted[] = {{ReductionKind::kMedian, false}, {ReductionKind::kMedian, true}};
  for (const DType dtype : kNumericDTypes) {
    expect_some_as_reference(maker.tensor(dtype, 65'537, Fill::kModerate), wanted);
    expect_some_as_reference(maker.tensor(dtype, 65'538, Fill::kModerate), wanted);
    expect_some_as_reference(maker.tensor(dtype, 65'538, Fill::kExtremes), wanted);
  }
}

// The sample that brackets the middle misleads where values repeat or lie in a pattern.
TEST(ReduceProperties, MediansOfManyAwkwardFloatsAgreeWithTheReference) {
  const Reduction wanted[] = {{ReductionKind::kMedian, false}, {ReductionKind::kMedian, true}};
  std::mt19937 random(9);
  const std::int64_t count = 300'000;
  const std::pair<const char*, std::function<float(std::int64_t)>> fills[] = {
      {"all equal", [](std::int64_t) { return 2.5F; }},
      {"half zeros", [&](std::int64_t) { return random() % 2 == 0 ? 0.0F : static_cast<float>(random() % 100) - 50; }},
      {"the middle between two heaps", [&](std::int64_t i) { return i % 2 == 0 ? -1.0F : 1.0F; }},
      {"sorted", [](std::int64_t i) { return static_cast<float>(i); }},
      {"what a sample at even distances does not see",
       [](std::int64_t i) { return i % (300'000 / 16384) == 0 ? 1e9F : static_cast<float>(i % 77); }},
      {"few far outliers", [&](std::int64_t i) { return i % 100'000 == 0 ? -1e30F : static_cast<float>(random()); }},
  };
  for (const auto& [what, fill] : fills) {
    for (const std::int64_t n : {count, count + 1}) {
      std::vector<float> values(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = fill(i);
      SCOPED_TRACE(what);
      expect_some_as_reference(Tensor(TensorView::of(values)), wanted);
    }
  }
}

TEST(ReduceProperties, TensorsOfManyChunksAgreeWithTheReference) {
  Maker maker(6);
  std::vector<Reduction> wanted = every_reduction();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    for (const std::int64_t count : {262'143, 262'145}) {
      expect_some_as_reference(maker.tensor(dtype, count, Fill::kModerate), wanted);
    }
  }
}

// Random layouts over one buffer: axes permuted, reversed, repeated, cut, and at any byte offset.
TEST(ReduceProperties, AnyLayoutGivesWhatItsDenseCopyGives) {
  Maker maker(3);
  for (int round = 0; round < 600; ++round) {
    const DType dtype = kNumericDTypes[static_cast<std::size_t>(round) % kNumericDTypes.size()];
    const auto item = static_cast<std::int64_t>(dtype_size(dtype));
    const Tensor buffer = maker.tensor(dtype, 3000, round % 3 == 0 ? Fill::kAnyBits : Fill::kModerate);
    std::string bytes = std::string(round % 5 == 0 ? 1 : 0, '\0') + std::string(buffer.bytes());
    const std::byte* data = reinterpret_cast<const std::byte*>(bytes.data()) + (round % 5 == 0 ? 1 : 0);
    std::vector<std::int64_t> shape, strides;
    std::int64_t step = item;
    for (std::size_t axis = 0, rank = 1 + maker.below(4); axis < rank; ++axis) {
      const auto extent = static_cast<std::int64_t>(1 + maker.below(round % 7 == 0 && axis == 0 ? 300 : 5));
      shape.insert(shape.begin(), extent);
      strides.insert(strides.begin(), maker.below(8) == 0 ? 0 : step);
      step *= extent + (maker.coin() ? 0 : 1);
      if (step > 500 * item) break;
    }
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::size_t other = maker.below(shape.size());
      std::swap(shape[axis], shape[other]);
      std::swap(strides[axis], strides[other]);
      if (maker.below(4) == 0) {
        data += strides[axis] * (shape[axis] - 1);
        strides[axis] = -strides[axis];
      }
    }
    const TensorView view(dtype, data, Shape(shape), strides);
    const Tensor dense(view);
    expect_as_reference(view, dense, "round " + std::to_string(round) + " " + std::string(dtype_name(dtype)));
    const TensorView copy(dtype, dense.bytes().data(), dense.shape());
    EXPECT_EQ(has_non_finite(view), has_non_finite(copy)) << round;
    bool ignored = false;
    const auto wide = widen_for_smdebug(view, &ignored);
    EXPECT_EQ(wide, widen_for_smdebug(copy, &ignored)) << "the elements keep their row-major order, round " << round;
    if (HasFailure()) return;
  }
}

TEST(HasNonFinite, AgreesWithTheReferenceForEveryPlace) {
  Maker maker(4);
  for (const DType dtype : kNumericDTypes) {
    for (const Fill fill : kAllFills) {
      for (const std::int64_t count : {0, 1, 2, 3, 15, 16, 17, 70, 2049, 5000}) {
        const Tensor tensor = maker.tensor(dtype, count, fill);
        bool want = false;
        if (!is_integer(dtype)) {
          const std::size_t size = dtype_size(dtype) / (is_complex(dtype) ? 2 : 1);
          for (std::size_t at = 0; at < tensor.bytes().size(); at += size) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, tensor.bytes().data() + at, size);
            want = want || !std::isfinite(decode_float(dtype, bits));
          }
        }
        EXPECT_EQ(has_non_finite(TensorView(dtype, tensor.bytes().data(), tensor.shape())), want)
            << dtype_name(dtype) << " n=" << count << " fill " << static_cast<int>(fill);
      }
    }
  }
}

}  // namespace
}  // namespace tornasole::reduce
