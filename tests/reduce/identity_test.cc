// The same bits whatever computes them: instruction set, number of threads, alignment, layout of equal order.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "reduce/derived.h"
#include "reduce/reduce.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {
namespace {

const std::vector<Reduction>& every_reduction() {
  static const std::vector<Reduction> all = [] {
    std::vector<Reduction> reductions;
    for (const ReductionKind kind : kAllReductionKinds) {
      for (const bool of_absolute : {false, true}) reductions.push_back({kind, of_absolute});
    }
    return reductions;
  }();
  return all;
}

std::string text_of(const Result<Tensor>& tensor) {
  std::string text;
  if (!tensor.ok()) return tensor.error().message;
  for (const char byte : tensor->bytes()) text += std::to_string(static_cast<unsigned char>(byte)) + ".";
  return text + "\n";
}

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

// The statistics that have loops of their own, of the elements side by side and as runs of three units.
std::string derived_fingerprint(const TensorView& tensor) {
  const std::int64_t inner = tensor.element_count() / 3;
  const TensorView runs(tensor.dtype(), tensor.data(), Shape{1, 3, inner});
  const TensorView shifted(tensor.dtype(), tensor.data() + dtype_size(tensor.dtype()) * (inner > 0), runs.shape());
  return text_of(quantiles(tensor)) + text_of(unit_activity(tensor)) + text_of(across_samples(tensor)) +
         text_of(unit_activity(runs)) + text_of(across_samples(runs)) + text_of(update(runs, runs)) +
         text_of(inner > 0 && tensor.element_count() % 3 != 0 ? cosine_previous(runs, shifted) : update(runs, runs));
}

// All results as bytes.
std::string fingerprint(const TensorView& tensor, int threads = 1) {
  Counts counts;
  const Reduced reduced = reduce(tensor, every_reduction(), threads, &counts);
  std::string text;
  for (const ReducedValue& value : reduced.values) {
    text += reduction_name(value.reduction) + "=";
    for (const char byte : value.value.bytes()) text += std::to_string(static_cast<unsigned char>(byte)) + ".";
    text += "\n";
  }
  if (!is_complex(tensor.dtype())) text += derived_fingerprint(tensor);
  return text + std::to_string(counts.zeros) + " " + std::to_string(counts.nan) + " " +
         std::to_string(counts.positive_infinite) + " " + std::to_string(counts.negative_infinite);
}

enum class Values { kNormal, kOffset, kManyZeros, kSpecials };
constexpr Values kAllValues[] = {Values::kNormal, Values::kOffset, Values::kManyZeros, Values::kSpecials};

// The type's bits of numbers that exercise rounding, the second loop of the variance, and both zeros.
std::string make_bytes(DType dtype, std::size_t count, Values values, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::string bytes(count * dtype_size(dtype), '\0');
  const auto number = [&]() -> double {
    switch (values) {
      case Values::kOffset: return 1000 + normal(random) * 0.01;
      case Values::kManyZeros: return random() % 3 == 0 ? normal(random) : (random() % 2 == 0 ? 0.0 : -0.0);
      default: return normal(random);
    }
  };
  for (std::size_t i = 0; i < count; ++i) {
    char* out = bytes.data() + i * dtype_size(dtype);
    if (dtype == DType::kFloat32) {
      auto value = static_cast<float>(number());
      if (values == Values::kSpecials && random() % 1000 == 0) value = random() % 2 == 0 ? -INFINITY : INFINITY;
      std::memcpy(out, &value, sizeof value);
    } else if (dtype == DType::kFloat64) {
      double value = number();
      if (values == Values::kSpecials && random() % 1000 == 0) value = 1e300;
      std::memcpy(out, &value, sizeof value);
    } else {
      const std::uint64_t bits[2] = {random(), random()};
      std::memcpy(out, bits, dtype_size(dtype));
      if (dtype == DType::kFloat16) out[1] = static_cast<char>(out[1] & 0xBB);  // finite
      if (dtype == DType::kBfloat16) out[1] = static_cast<char>(out[1] & 0xBF);
    }
  }
  return bytes;
}

class EveryInstructionSet : public testing::Test {
 protected:
  ~EveryInstructionSet() override { use_vector_kernels(*supported_vector_kernels().front()); }
};

TEST_F(EveryInstructionSet, GivesTheSameBits) {
  ASSERT_GE(supported_vector_kernels().size(), 2U) << "nothing to compare on this processor";
  const std::size_t counts[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 1000, 2047, 2048, 2049, 5000, 70'000};
  for (const DType dtype : kNumericDTypes) {
    for (const std::size_t count : counts) {
      for (const Values values : kAllValues) {
        const std::string bytes = make_bytes(dtype, count, values, static_cast<std::uint32_t>(count));
        const TensorView tensor(dtype, bytes.data(), Shape{static_cast<std::int64_t>(count)});
        use_vector_kernels(*supported_vector_kernels().front());
        const std::string want = fingerprint(tensor);
        for (const VectorKernels* kernels : supported_vector_kernels()) {
          use_vector_kernels(*kernels);
          ASSERT_EQ(fingerprint(tensor), want)
              << kernels->name << " " << dtype_name(dtype) << " n=" << count << " values " << static_cast<int>(values);
        }
      }
    }
  }
}

// A reduction that needs less of a pass than others do gives what it gives beside them.
TEST_F(EveryInstructionSet, OneReductionAloneGivesTheSameBits) {
  std::vector<Reduction> all;
  for (const ReductionKind kind : {ReductionKind::kMin, ReductionKind::kMax, ReductionKind::kMean, ReductionKind::kStd,
                                   ReductionKind::kVariance, ReductionKind::kSum, ReductionKind::kProd}) {
    all.push_back({kind, false});
    all.push_back({kind, true});
  }
  all.push_back({ReductionKind::kL1, false});
  all.push_back({ReductionKind::kL2, false});
  const std::size_t counts[] = {1, 2, 17, 2049, 70'000};
  for (const VectorKernels* kernels : supported_vector_kernels()) {
    use_vector_kernels(*kernels);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16, DType::kComplex64}) {
      for (const std::size_t count : counts) {
        for (const Values values : kAllValues) {
          const std::string bytes = make_bytes(dtype, count, values, static_cast<std::uint32_t>(count));
          const TensorView tensor(dtype, bytes.data(), Shape{static_cast<std::int64_t>(count)});
          for (const ReducedValue& beside : reduce(tensor, all).values) {
            const Reduced alone = reduce(tensor, std::span(&beside.reduction, 1));
            ASSERT_EQ(alone.values.size(), 1U);
            ASSERT_EQ(alone.values.front().value, beside.value)
                << kernels->name << " " << dtype_name(dtype) << " n=" << count << " "
                << reduction_name(beside.reduction) << " values " << static_cast<int>(values);
          }
        }
      }
    }
  }
}

TEST(EveryAlignment, GivesTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    const std::size_t count = 5003;
    const std::string bytes = make_bytes(dtype, count, Values::kNormal, 7);
    const TensorView tensor(dtype, bytes.data(), Shape{static_cast<std::int64_t>(count)});
    const std::string want = fingerprint(tensor);
    for (std::size_t shift = 1; shift < 64; ++shift) {
      std::string moved(shift, '\0');
      moved += bytes;
      EXPECT_EQ(fingerprint(TensorView(dtype, moved.data() + shift, tensor.shape())), want)
          << dtype_name(dtype) << " shifted by " << shift;
    }
  }
}

TEST(EveryNumberOfThreads, GivesTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kComplex64}) {
    const std::size_t count = (std::size_t{1} << 20) + 12'345;
    for (const Values values : {Values::kNormal, Values::kOffset, Values::kManyZeros}) {
      const std::string bytes = make_bytes(dtype, count, values, 11);
      const TensorView tensor(dtype, bytes.data(), Shape{static_cast<std::int64_t>(count)});
      const std::string want = fingerprint(tensor, 1);
      for (const int threads : {2, 3, 8}) {
        EXPECT_EQ(fingerprint(tensor, threads), want) << dtype_name(dtype) << " on " << threads << " threads";
      }
    }
  }
}

// A transposed or channels-last tensor without gaps is read as it lies, so its sums run in another order; what does not
// depend on the order must not change.
TEST(EveryLayout, KeepsCountsAndExtremes) {
  const std::string bytes = make_bytes(DType::kFloat32, 6000, Values::kSpecials, 13);
  const TensorView dense(DType::kFloat32, bytes.data(), Shape{60, 100});
  const std::int64_t strides[] = {4, 240};
  const TensorView transposed(DType::kFloat32, bytes.data(), Shape{60, 100}, strides);
  Counts want, got;
  const Reduction extremes[] = {
      {ReductionKind::kMin, false}, {ReductionKind::kMax, false}, {ReductionKind::kMin, true}};
  const Reduced a = reduce(dense, extremes, 1, &want), b = reduce(transposed, extremes, 1, &got);
  EXPECT_EQ(want, got);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) EXPECT_EQ(a.values[i].value, b.values[i].value);
}

}  // namespace
}  // namespace tornasole::reduce
