#include "reduce/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "base/json.h"
#include "reduce/any_tensor.h"
#include "support/tests_dir.h"

namespace tornasole::reduce {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string golden(const std::string& name) { return tests_dir() + "/golden/smdebug/tensorboard_numpy/" + name; }
Json read_json(const std::string& name) {
  std::ifstream file(golden(name));
  std::stringstream text;
  text << file.rdbuf();
  auto json = parse_json(text.str());
  EXPECT_TRUE(json.ok()) << name;
  return json.ok() ? *json : Json();
}
// Numbers that JSON has no text for are strings in the fixture.
double number_of(const Json& json) {
  if (const auto* text = json.as_string()) {
    return *text == "NaN" ? kNan : *text == "Infinity" ? kInfinity : -kInfinity;
  }
  if (const auto* truth = json.as_bool()) return *truth ? 1 : 0;
  if (const auto* whole = json.as_int()) return static_cast<double>(*whole);
  return *json.as_double();
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool is_near(double a, double b) { return is_same(a, b) || std::fabs(a - b) <= 1e-13 * std::fabs(b); }

TEST(TensorboardEdges, AreThoseOfTheOriginalDebuggerToTheLastBit) {
  std::ifstream file(golden("default_bucket_edges.txt"));
  std::vector<double> wanted;
  for (std::string line; std::getline(file, line);) wanted.push_back(std::strtod(line.c_str(), nullptr));
  ASSERT_EQ(wanted.size(), 1549U);
  const auto edges = tensorboard_edges();
  EXPECT_EQ(std::vector<double>(edges.begin(), edges.end()), wanted);
}

// The elements of a tensor of the fixture, in its type.
Tensor fixture_tensor(const Json& value) {
  const std::string& dtype = *value.find("dtype")->as_string();
  std::vector<std::int64_t> dims;
  for (const Json& extent : *value.find("shape")->as_array()) dims.push_back(*extent.as_int());
  std::string bytes;
  DType type = DType::kFloat64;
  const auto put = [&](auto element) { bytes.append(reinterpret_cast<const char*>(&element), sizeof element); };
  for (const Json& item : *value.find("data")->as_array()) {
    const double number = number_of(item);
    if (dtype == "float32") {
      type = DType::kFloat32;
      put(static_cast<float>(number));
    } else if (dtype == "int64") {
      type = DType::kInt64;
      put(static_cast<std::int64_t>(number));
    } else if (dtype == "uint8") {
      type = DType::kUint8;
      put(static_cast<std::uint8_t>(number));
    } else if (dtype == "float16") {
      type = DType::kFloat16;
      put(static_cast<std::uint16_t>(number > 1 ? 0x7B53 : 0x2E66));  // 60000 and 0.0999755859375
    } else {
      put(number);
    }
  }
  return {type, Shape(dims), std::move(bytes)};
}

TEST(TensorboardHistogram, ReproducesWhatTheOriginalDebuggerWrote) {
  std::map<std::string, Tensor> tensors;
  const Json trial = read_json("expected.json");
  for (const Json& tensor : *trial.find("tensors")->as_array()) {
    const Json* value = tensor.find("entries")->as_array()->front().find("value");
    std::string tag;
    for (const char c : *tensor.find("name")->as_string()) {
      tag.push_back(std::strchr(" :()", c) != nullptr ? '_' : c);
    }
    tensors.emplace("hist/" + tag, fixture_tensor(*value));
  }
  int compared = 0;
  const Json board = read_json("tensorboard.expected.json");
  for (const Json& file : *board.find("files")->as_array()) {
    for (const Json& event : *file.find("events")->as_array()) {
      const Json& value = event.find("values")->as_array()->front();
      const Json* want = value.find("histo");
      if (want == nullptr) continue;
      const std::string& tag = *value.find("tag")->as_string();
      SCOPED_TRACE(tag);
      ASSERT_TRUE(tensors.contains(tag));
      const Tensor& tensor = tensors.at(tag);
      const auto got = tensorboard_histogram({tensor.dtype(), tensor.bytes().data(), tensor.shape()});
      ASSERT_TRUE(got.ok());
      EXPECT_PRED2(is_same, got->min, number_of(*want->find("min")));
      EXPECT_PRED2(is_same, got->max, number_of(*want->find("max")));
      EXPECT_PRED2(is_same, got->num, number_of(*want->find("num")));
      EXPECT_PRED2(is_near, got->sum, number_of(*want->find("sum")));
      EXPECT_PRED2(is_near, got->sum_squares, number_of(*want->find("sum_squares")));
      ASSERT_EQ(got->bucket.size(), static_cast<std::size_t>(number_of(*want->find("buckets"))));
      ASSERT_EQ(got->bucket_limit.size(), got->bucket.size());
      EXPECT_EQ(got->bucket_limit.front(), number_of(*want->find("bucket_limit_first")));
      EXPECT_EQ(got->bucket_limit.back(), number_of(*want->find("bucket_limit_last")));
      std::vector<double> bucket(got->bucket.size());
      for (const Json& filled : *want->find("nonzero")->as_array()) {
        const auto& items = *filled.as_array();
        const auto at = static_cast<std::size_t>(number_of(items[0]));
        EXPECT_EQ(got->bucket_limit[at], number_of(items[1]));
        bucket[at] = number_of(items[2]);
      }
      EXPECT_EQ(got->bucket, bucket);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 18);
}

// One pass along the edges per element.
Histogram slow_histogram(const std::vector<long double>& elements) {
  const auto edges = tensorboard_edges();
  std::vector<double> counts(edges.size() - 1);
  Histogram h{.min = kInfinity, .max = -kInfinity, .num = static_cast<double>(elements.size())};
  long double sum = 0;
  long double squares = 0;
  for (const long double element : elements) {
    const auto x = static_cast<double>(element);  // buckets are of doubles
    sum += x;
    squares += static_cast<long double>(x) * x;
    h.min = std::min(h.min, x);
    h.max = std::max(h.max, x);
    if (std::isnan(x)) {
      ++h.outliers.nan;
    } else if (std::isinf(x)) {
      ++(x > 0 ? h.outliers.pos_inf : h.outliers.neg_inf);
    } else if (x < edges.front()) {
      ++h.outliers.below;
    } else if (x > edges.back()) {
      ++h.outliers.above;
    } else {
      std::size_t bucket = 0;
      while (bucket + 1 < counts.size() && x >= edges[bucket + 1]) ++bucket;
      ++counts[bucket];
    }
  }
  h.sum = static_cast<double>(sum);
  h.sum_squares = static_cast<double>(squares);
  if (elements.empty()) h.min = h.max = kNan;
  if (h.outliers.nan > 0) h.min = h.max = h.sum = h.sum_squares = kNan;
  std::size_t first = 0;
  while (first < counts.size() && counts[first] == 0) ++first;
  if (first == counts.size()) return h;
  std::size_t last = counts.size() - 1;
  while (counts[last] == 0) --last;
  h.bucket.push_back(0);
  for (std::size_t i = first; i <= last; ++i) h.bucket.push_back(counts[i]);
  for (std::size_t i = first; i <= last + 1; ++i) h.bucket_limit.push_back(edges[i]);
  return h;
}

void expect_slow(const TensorView& view, const Tensor& dense) {
  const auto got = tensorboard_histogram(view);
  ASSERT_TRUE(got.ok());
  const Histogram want = slow_histogram(elements_of(dense));
  EXPECT_PRED2(is_same, got->min, want.min);
  EXPECT_PRED2(is_same, got->max, want.max);
  EXPECT_EQ(got->num, want.num);
  // Terms may cancel: relative to what was added up.
  const double scale = std::isfinite(want.sum_squares) ? std::sqrt(want.sum_squares * want.num) : 0;
  EXPECT_TRUE(is_same(got->sum, want.sum) || std::fabs(got->sum - want.sum) <= 1e-12 * scale) << got->sum << want.sum;
  EXPECT_PRED2(is_near, got->sum_squares, want.sum_squares);
  EXPECT_EQ(got->bucket, want.bucket);
  EXPECT_EQ(got->bucket_limit, want.bucket_limit);
  EXPECT_EQ(got->outliers, want.outliers);
}

TEST(TensorboardHistogram, EveryTypeAndSizeAgreesWithASlowLoop) {
  TensorMaker maker(1);
  for (const DType dtype : real_dtypes()) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      for (const Values values : {Values::kMixed, Values::kAnyBits}) {
        // Squares of doubles of any bits overflow the sums of one and not of the other.
        if (dtype == DType::kFloat64 && values == Values::kAnyBits) continue;
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(count));
        const Tensor dense = maker.tensor(dtype, Shape{count}, values);
        expect_slow({dtype, dense.bytes().data(), dense.shape()}, dense);
        const AnyTensor strided = maker.strided(dtype, {count % 4 + 1, count / 4}, values);
        expect_slow(strided.view(), strided.dense());
        if (HasFailure()) return;
      }
    }
  }
}

TEST(TensorboardHistogram, EveryEdgeAndItsNeighboursGoWhereTheyBelong) {
  std::vector<double> doubles;
  std::vector<float> floats;
  for (const double edge : tensorboard_edges()) {
    doubles.insert(doubles.end(), {edge, std::nextafter(edge, -kInfinity), std::nextafter(edge, kInfinity)});
    const auto near = static_cast<float>(edge);
    floats.insert(floats.end(), {near, std::nextafterf(near, -INFINITY), std::nextafterf(near, INFINITY)});
  }
  for (const double x : doubles) expect_slow(TensorView::of(x), Tensor(TensorView::of(x)));
  for (const float x : floats) expect_slow(TensorView::of(x), Tensor(TensorView::of(x)));
  expect_slow(TensorView::of(doubles), Tensor(TensorView::of(doubles)));
  expect_slow(TensorView::of(floats), Tensor(TensorView::of(floats)));
}

TEST(TensorboardHistogram, ManyBlocksAndOutliersAreAllCounted) {
  TensorMaker maker(3);
  std::vector<float> values;
  for (int i = 0; i < 10'000; ++i) values.push_back(static_cast<float>(maker.number()));
  for (const std::size_t at : {0U, 2047U, 2048U, 9'999U}) values[at] = NAN;
  values[5'000] = INFINITY;
  values[5'001] = -INFINITY;
  values[5'002] = 3e20F;
  values[5'003] = -3e20F;
  expect_slow(TensorView::of(values), Tensor(TensorView::of(values)));
  const auto h = tensorboard_histogram(TensorView::of(values));
  EXPECT_EQ(h->outliers, (Outliers{.nan = 4, .pos_inf = 1, .neg_inf = 1, .below = 1, .above = 1}));
  double in_buckets = 0;
  for (const double count : h->bucket) in_buckets += count;
  EXPECT_EQ(in_buckets + 8, h->num);
}

TEST(TensorboardHistogram, WhatIsNotDefinedIsRefused) {
  const std::vector<std::complex<float>> complex(3);
  const std::string_view texts[] = {"a"};
  EXPECT_EQ(tensorboard_histogram(TensorView::of(complex)).error().code, ErrorCode::kInvalid);
  EXPECT_NE(tensorboard_histogram(TensorView::of(complex)).error().message.find("complex64"), std::string::npos);
  EXPECT_EQ(tensorboard_histogram(TensorView::strings(texts)).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(tensorboard_histogram({DType::kFloat32, nullptr, Shape{2}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(tensorboard_histogram({DType::kFloat32, nullptr, Shape{-2}}).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(tensorboard_histogram({DType::kFloat32, nullptr, Shape{0}})->bucket.empty());
}

// ---- equal bins

struct LinearCase {
  const char* what;
  std::vector<double> values;
  std::int64_t bins;
  std::optional<ValueRange> range;
  std::vector<double> edges;
  std::vector<std::int64_t> counts;
  Outliers outliers;
};

TEST(LinearHistogram, FollowsTheRulesOfNumpy) {
  const LinearCase cases[] = {
      {"the last edge is closed, the others open", {0, 1, 2, 3}, 3, {}, {0, 1, 2, 3}, {1, 1, 2}, {}},
      {"a range of no width is widened by a half", {5, 5, 5}, 2, {}, {4.5, 5, 5.5}, {0, 3}, {}},
      {"without elements the range is 0 to 1", {}, 2, {}, {0, 0.5, 1}, {0, 0}, {}},
      {"without finite elements too", {kNan, kInfinity}, 1, {}, {0, 1}, {0}, {.nan = 1, .pos_inf = 1}},
      {"what is not finite is counted apart",
       {1, kNan, kInfinity, -kInfinity, 2, kNan},
       1,
       {},
       {1, 2},
       {2},
       {.nan = 2, .pos_inf = 1, .neg_inf = 1}},
      {"outside a given range is below or above",
       {-1, 0, 0.5, 1, 7},
       2,
       ValueRange{0, 1},
       {0, 0.5, 1},
       {1, 2},
       {.below = 1, .above = 1}},
      {"a given range of no width is widened", {2, 2.5, 3}, 1, ValueRange{2, 2}, {1.5, 2.5}, {2}, {.above = 1}},
      {"negative zero is zero", {-0.0, 0.0}, 2, ValueRange{-1, 1}, {-1, 0, 1}, {0, 2}, {}},
      {"one bin takes all", {1, 2, 3}, 1, {}, {1, 3}, {3}, {}},
  };
  for (const LinearCase& c : cases) {
    const auto h = linear_histogram(TensorView::of(c.values), c.bins, c.range);
    ASSERT_TRUE(h.ok()) << c.what;
    EXPECT_EQ(h->edges, c.edges) << c.what;
    EXPECT_EQ(h->counts, c.counts) << c.what;
    EXPECT_EQ(h->outliers, c.outliers) << c.what;
  }
}

void expect_slow_linear(const TensorView& view, const Tensor& dense, std::int64_t bins,
                        std::optional<ValueRange> range) {
  const auto got = linear_histogram(view, bins, range);
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got->edges.size(), static_cast<std::size_t>(bins) + 1);
  EXPECT_TRUE(std::ranges::is_sorted(got->edges));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins));
  Outliers outliers;
  double low = kInfinity;
  double high = -kInfinity;
  for (const long double element : elements_of(dense)) {
    const auto x = static_cast<double>(element);
    if (std::isnan(x)) {
      ++outliers.nan;
    } else if (std::isinf(x)) {
      ++(x > 0 ? outliers.pos_inf : outliers.neg_inf);
    } else if (x < got->edges.front() || x > got->edges.back()) {
      ++(x > 0 && x > got->edges.back() ? outliers.above : outliers.below);
    } else {
      std::size_t bin = 0;
      while (bin + 1 < counts.size() && x >= got->edges[bin + 1]) ++bin;
      ++counts[bin];
    }
    if (std::isfinite(x)) low = std::min(low, x);
    if (std::isfinite(x)) high = std::max(high, x);
  }
  EXPECT_EQ(got->counts, counts);
  EXPECT_EQ(got->outliers, outliers);
  if (!range && low < high) {
    EXPECT_EQ(got->edges.front(), low);
    EXPECT_EQ(got->edges.back(), high);
  }
}

TEST(LinearHistogram, EveryTypeAndSizeAgreesWithASlowLoop) {
  TensorMaker maker(2);
  for (const DType dtype : real_dtypes()) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      for (const Values values : {Values::kMixed, Values::kAnyBits}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(count));
        const auto bins = static_cast<std::int64_t>(1 + maker.below(40));
        const AnyTensor strided = maker.strided(dtype, {count % 5 + 1, count / 5}, values);
        const Tensor dense = strided.dense();
        expect_slow_linear(strided.view(), dense, bins, {});
        expect_slow_linear({dtype, dense.bytes().data(), dense.shape()}, dense, bins, ValueRange{-1, 1.5});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(LinearHistogram, RangesAtTheEndsOfTheNumbersStaySound) {
  constexpr double kMax = std::numeric_limits<double>::max();
  const std::vector<double> wide = {-kMax, 0, kMax, 1, -1e300};
  expect_slow_linear(TensorView::of(wide), Tensor(TensorView::of(wide)), 7, {});
  const std::vector<double> narrow = {1, std::nextafter(1.0, 2), 1};
  expect_slow_linear(TensorView::of(narrow), Tensor(TensorView::of(narrow)), 100, {});
  const std::vector<double> tiny = {0, 4.9e-324, 1e-310};
  expect_slow_linear(TensorView::of(tiny), Tensor(TensorView::of(tiny)), 5, {});
  const std::vector<double> large = {1e300, 1e300};
  const auto h = linear_histogram(TensorView::of(large), 3);
  ASSERT_TRUE(h.ok());
  EXPECT_EQ(h->counts[0] + h->counts[1] + h->counts[2], 2);
}

TEST(LinearHistogram, BadBinsAndRangesAreRefusedByName) {
  const std::vector<float> values = {1, 2};
  const std::pair<std::int64_t, std::optional<ValueRange>> cases[] = {
      {0, {}},
      {-3, {}},
      {kMaxBins + 1, {}},
      {2, ValueRange{1, 0}},
      {2, ValueRange{0, kInfinity}},
      {2, ValueRange{kNan, 1}},
  };
  for (const auto& [bins, range] : cases) {
    const auto h = linear_histogram(TensorView::of(values), bins, range);
    ASSERT_FALSE(h.ok());
    EXPECT_EQ(h.error().code, ErrorCode::kInvalid);
    EXPECT_NE(h.error().message.find("allowed"), std::string::npos) << h.error().message;
  }
  EXPECT_FALSE(linear_histogram(TensorView::of(std::vector<std::complex<double>>(2)), 2).ok());
}

}  // namespace
}  // namespace tornasole::reduce
