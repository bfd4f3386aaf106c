// Numbers from tensors: how long one call takes. Prints JSON; reduce_peer.py does the same with smdebug and NumPy.
//
//   reduce_bench reductions COUNT | median COUNT | histogram COUNT | read BYTES
//
//   reductions  the eighteen reductions of smdebug of COUNT floats
//   median      of COUNT floats
//   histogram   of COUNT floats in TensorBoard's 1549 buckets
//   read        count, min, max, mean, variance, l1, l2, zeros and non-finite of BYTES of floats and of as many
//               elements of half width, beside a loop that only reads them

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "reduce/histogram.h"
#include "reduce/reduce.h"
#include "tornasole/stats.h"

namespace {

using namespace tornasole;
using Clock = std::chrono::steady_clock;

// Seconds of one call: the best of several rounds, each long enough to be measured.
double time_of(const std::function<void()>& work) {
  double best = 1e9;
  int calls = 1;
  for (int round = 0; round < 7;) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) work();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (took < 2e-3) {
      calls *= 4;
      continue;
    }
    best = std::min(best, took / calls);
    ++round;
  }
  return best;
}

std::vector<float> normal_floats(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  // A million different ones, repeated: making them must not take longer than reading them.
  std::vector<float> some(std::min<std::size_t>(count, 1'000'000));
  for (float& value : some) value = normal(random);
  std::vector<float> values(count);
  for (std::size_t at = 0; at < count; at += some.size()) {
    std::copy_n(some.begin(), std::min(some.size(), count - at), values.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return values;
}

volatile double sink;

int reductions(std::size_t count) {
  const std::vector<float> values = normal_floats(count);
  std::vector<Reduction> wanted;
  for (const char* name : {"min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2"}) {
    for (const char* prefix : {"", "abs_"}) wanted.push_back(parse_reduction(std::string(prefix) + name).value());
  }
  const double seconds = time_of([&] { sink = reduce::reduce(TensorView::of(values), wanted).values.empty() ? 0 : 1; });
  std::printf("{\"seconds\": %.9g}\n", seconds);
  return 0;
}

int median(std::size_t count) {
  const std::vector<float> values = normal_floats(count);
  const double seconds = time_of([&] { sink = stats(TensorView::of(values), {Stat::kMedian})->has(Stat::kMedian); });
  std::printf("{\"seconds\": %.9g}\n", seconds);
  return 0;
}

int histogram(std::size_t count) {
  const std::vector<float> values = normal_floats(count);
  const double seconds = time_of([&] { sink = reduce::tensorboard_histogram(TensorView::of(values))->num; });
  std::printf("{\"seconds\": %.9g}\n", seconds);
  return 0;
}

int read(std::size_t bytes) {
  const std::vector<float> values = normal_floats(bytes / sizeof(float));
  const auto count = static_cast<std::int64_t>(values.size());
  const double plain = time_of([&] {
    const auto* words = reinterpret_cast<const std::uint64_t*>(values.data());
    std::uint64_t sum[8] = {};
    for (std::size_t i = 0; i + 8 <= bytes / 8; i += 8) {
      for (std::size_t k = 0; k < 8; ++k) sum[k] += words[i + k];
    }
    sink = static_cast<double>(sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7]);
  });
  const StatSet wanted = {Stat::kCount, Stat::kMin, Stat::kMax, Stat::kMean,  Stat::kVariance,
                          Stat::kL1,    Stat::kL2,  Stat::kNan, Stat::kZeros, Stat::kInf};
  const auto seconds = [&](DType dtype) {
    const TensorView tensor(dtype, values.data(), Shape{count});
    return time_of([&] { sink = stats(tensor, wanted)->has(Stat::kMean); });
  };
  const double as_float = seconds(DType::kFloat32);
  // The bits of floats are finite halves and bfloat16s often enough; NaN among them only adds work.
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>((i * 40503U) & 0xBBFFU);
  const auto narrow = [&](DType dtype) {
    const TensorView tensor(dtype, halves.data(), Shape{count});
    return time_of([&] { sink = stats(tensor, wanted)->has(Stat::kMean); });
  };
  std::printf("{\"read\": %.9g, \"float32\": %.9g, \"float16\": %.9g, \"bfloat16\": %.9g}\n", plain, as_float,
              narrow(DType::kFloat16), narrow(DType::kBfloat16));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count == 3 || count == 4 ? arguments[1] : "";
  const std::size_t size = what.empty() ? 0 : std::strtoul(arguments[2], nullptr, 10);  // a directory may follow
  if (what == "reductions") return reductions(size);
  if (what == "median") return median(size);
  if (what == "histogram") return histogram(size);
  if (what == "read") return read(size);
  std::fprintf(stderr, "usage: reduce_bench reductions|median|histogram COUNT, reduce_bench read BYTES\n");
  return 2;
}
