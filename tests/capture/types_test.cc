// Every type of element comes back bit for bit: NaN payloads, negative zero, empty, zero-dimensional, strided.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "capture/open_hook.h"
#include "capture/written_trial.h"
#include "store/memory/memory_store.h"

namespace tornasole::capture {
namespace {

struct Sample {
  std::string name;
  DType dtype;
  std::string bytes;  // row-major
  Shape shape;
  std::vector<std::int64_t> strides;  // of `memory`, if not dense
  std::string memory;
};

std::string random_bytes(std::mt19937& random, std::size_t count, DType dtype) {
  std::string bytes(count, '\0');
  // All bit patterns are values of a numeric type, NaN payloads included; a bool is 0 or 1.
  for (char& byte : bytes) byte = static_cast<char>(dtype == DType::kBool ? random() & 1U : random());
  return bytes;
}

std::vector<Sample> make_samples() {
  std::mt19937 random(7);
  std::vector<Sample> samples;
  for (const DType dtype : kNumericDTypes) {
    const std::size_t item = dtype_size(dtype);
    const std::string name(dtype_name(dtype));
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 1, 3, 1, 2, 1, 1, 2, 2, 1}, Shape{20000}}) {
      const auto count = static_cast<std::size_t>(shape.element_count());
      samples.push_back({name + shape.to_string(), dtype, random_bytes(random, count * item, dtype), shape, {}, {}});
    }
    // The transpose of a 3 x 5 matrix, read through strides.
    Sample strided{name + " transposed", dtype, {}, Shape{5, 3}, {}, random_bytes(random, 15 * item, dtype)};
    strided.strides = {static_cast<std::int64_t>(item), static_cast<std::int64_t>(5 * item)};
    for (std::size_t row = 0; row < 5; ++row) {
      for (std::size_t column = 0; column < 3; ++column) {
        strided.bytes += strided.memory.substr((column * 5 + row) * item, item);
      }
    }
    samples.push_back(strided);
  }
  return samples;
}

TEST(Types, EveryTypeAndShapeIsBitExact) {
  const std::vector<Sample> samples = make_samples();
  store::MemoryStore store;
  {
    auto hook = open_hook({.out_dir = "/nowhere", .save_config = {.save_interval = 1}, .save_all = true},
                          {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    auto step = hook->begin_step(Mode::kTrain);
    for (const Sample& sample : samples) {
      if (sample.strides.empty()) {
        step.save(sample.name, TensorView(sample.dtype, sample.bytes.data(), sample.shape));
      } else {
        step.save(sample.name, TensorView(sample.dtype, sample.memory.data(), sample.shape, sample.strides));
      }
    }
    step.save("empty", TensorView(DType::kFloat32, nullptr, Shape{0, 3}));
    step.end();
    EXPECT_TRUE(hook->close().ok());
  }
  const auto steps = read_steps(store);
  ASSERT_EQ(steps.size(), 1U);
  const auto& values = steps.at(0).values;
  EXPECT_EQ(values.size(), samples.size());  // an empty tensor is not written
  for (const Sample& sample : samples) {
    ASSERT_TRUE(values.contains(sample.name)) << sample.name;
    const Tensor& got = values.at(sample.name);
    EXPECT_EQ(got.dtype(), sample.dtype) << sample.name;
    EXPECT_EQ(got.shape(), sample.shape) << sample.name;
    EXPECT_EQ(got.bytes(), sample.bytes) << sample.name;
  }
}

TEST(Types, StringsComeBackAndBadOnesAreRepaired) {
  store::MemoryStore store;
  {
    auto hook = open_hook({.out_dir = "/nowhere", .save_config = {.save_interval = 1}, .save_all = true},
                          {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    const std::vector<std::string_view> texts = {"plain", "", "\xC3\xA4", "bad\xFF"};
    hook->begin_step(Mode::kTrain).save("texts", TensorView::strings(texts));
  }
  const Tensor got = read_steps(store).at(0).values.at("texts");
  EXPECT_EQ(std::vector<std::string>(got.texts().begin(), got.texts().end()),
            (std::vector<std::string>{"plain", "", "\xC3\xA4", "bad\xEF\xBF\xBD"}));
}

TEST(Types, WideningForSmdebugKeepsEveryValue) {
  store::MemoryStore store;
  const std::vector<std::int16_t> shorts = {-32768, 0, 32767};
  const std::vector<std::uint64_t> fits = {0, 1ULL << 62};
  const std::vector<std::uint64_t> beyond = {1ULL << 63};
  {
    HookOptions options{.out_dir = "/nowhere", .save_config = {.save_interval = 1}, .save_all = true};
    options.readable_by_smdebug = true;
    options.log = nullptr;
    auto hook = open_hook(options, {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    auto step = hook->begin_step(Mode::kTrain);
    step.save("shorts", shorts);
    step.save("fits", fits);
    step.save("beyond", beyond);
  }
  const auto values = read_steps(store).at(0).values;
  EXPECT_EQ(values_of<std::int32_t>(values.at("shorts")), (std::vector<std::int32_t>{-32768, 0, 32767}));
  EXPECT_EQ(values_of<std::int64_t>(values.at("fits")), (std::vector<std::int64_t>{0, 1LL << 62}));
  EXPECT_EQ(values_of<std::uint64_t>(values.at("beyond")), beyond);
}

}  // namespace
}  // namespace tornasole::capture
