// 1. One read finds the smallest and the largest element.
// 2. One read counts the elements in classes of equal width between the two.
// 3. One read keeps the elements of the classes that hold a wanted rank: a few hundredths of a tensor, unless it has
//    elements far from all others.
// 4. Each class is small enough for std::nth_element.

#include "reduce/select_floats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "reduce/blocks.h"
#include "reduce/vector_kernels.h"

namespace tornasole::reduce {
namespace {

// Elements of a tensor. More would not fit the counters.
constexpr std::int64_t kWorthIt = 512;
constexpr std::int64_t kTooMany = std::int64_t{1} << 31;
constexpr std::size_t kClasses = 4096;
constexpr std::size_t kMaxKept = std::size_t{1} << 16;

// Zeros of both signs are equal as floats, and yet have an order.
bool is_before(float a, float b) noexcept { return a != b ? a < b : std::signbit(a) && !std::signbit(b); }

class WidthClasses {
 public:
  // False where classes of equal width cannot be told apart.
  bool find_range(const TensorView& tensor) {
    float min = std::numeric_limits<float>::infinity(), max = -min;
    const bool is_finite = for_each_block<float>(tensor, ElementOrder::kAny, [&](const float* x, std::size_t size) {
      return kernels_.extend_range(x, size, &min, &max);
    });
    low_ = min;
    scale_ = static_cast<float>(kClasses) / (max - min);
    return is_finite && std::isfinite(max - min) && std::isfinite(scale_);
  }

  void count(const TensorView& tensor) {
    // Two tables: an increment that waits for the one before it is slow.
    std::vector<std::uint32_t> other(kClasses);
    for_each_class_block(tensor, [&](const float*, const std::uint16_t* classes, std::size_t size) {
      std::size_t i = 0;
      for (; i + 2 <= size; i += 2) {
        ++counts_[classes[i]];
        ++other[classes[i + 1]];
      }
      if (i < size) ++counts_[classes[i]];
    });
    for (std::size_t i = 0; i < kClasses; ++i) counts_[i] += other[i];
  }

  // Nothing if the classes with these ranks have more than kMaxKept elements.
  std::optional<std::vector<float>> select(const TensorView& tensor, std::span<const std::int64_t> ranks) {
    if (!choose(ranks)) return std::nullopt;
    std::vector<float> kept(kept_);
    std::array<std::size_t, 256> next;
    std::ranges::transform(chosen_, next.begin(), &Chosen::begin);
    for_each_class_block(tensor, [&](const float* x, const std::uint16_t* classes, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        if (position_[classes[i]] == kNotChosen) [[likely]]
          continue;
        kept[next[position_[classes[i]]]++] = x[i];
      }
    });
    std::vector<float> selected;
    for (const Chosen& chosen : chosen_) {
      auto begin = kept.begin() + static_cast<std::ptrdiff_t>(chosen.begin);
      const auto end = begin + static_cast<std::ptrdiff_t>(chosen.size);
      for (const std::int64_t rank : chosen.ranks) {
        const auto nth = kept.begin() + static_cast<std::ptrdiff_t>(chosen.begin) + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(begin, nth, end, is_before);
        selected.push_back(*nth);
        begin = nth;
      }
    }
    return selected;
  }

 private:
  static constexpr std::uint8_t kNotChosen = 255;
  // A class that holds wanted ranks.
  struct Chosen {
    std::size_t begin = 0, size = 0;       // among what is kept
    std::vector<std::int64_t> ranks = {};  // within the class
  };

  bool choose(std::span<const std::int64_t> ranks) {
    position_.fill(kNotChosen);
    std::int64_t before = 0;
    for (std::size_t i = 0, next = 0; i < kClasses && next < ranks.size(); ++i) {
      const std::int64_t after = before + counts_[i];
      if (ranks[next] < after) {
        Chosen chosen{kept_, counts_[i]};
        for (; next < ranks.size() && ranks[next] < after; ++next) chosen.ranks.push_back(ranks[next] - before);
        kept_ += chosen.size;
        if (chosen_.size() == kNotChosen || kept_ > kMaxKept) return false;
        position_[i] = static_cast<std::uint8_t>(chosen_.size());
        chosen_.push_back(std::move(chosen));
      }
      before = after;
    }
    return true;
  }

  template <typename Use>
  void for_each_class_block(const TensorView& tensor, const Use& use) const {
    for_each_block<float>(tensor, ElementOrder::kAny, [&](const float* x, std::size_t size) {
      std::array<std::uint16_t, kBlockElements> classes;
      kernels_.classify_floats(x, size, low_, scale_, kClasses - 1, classes.data());
      use(x, classes.data(), size);
      return true;
    });
  }

  const VectorKernels& kernels_ = vector_kernels();
  float low_ = 0, scale_ = 0;
  std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(kClasses);
  std::array<std::uint8_t, kClasses> position_;  // in chosen_, by class
  std::vector<Chosen> chosen_;
  std::size_t kept_ = 0;  // elements in chosen_
};

}  // namespace

std::optional<std::vector<float>> select_floats(const TensorView& tensor, std::span<const std::int64_t> ranks) {
  if (tensor.dtype() != DType::kFloat32) return std::nullopt;
  if (tensor.element_count() < kWorthIt || tensor.element_count() >= kTooMany) return std::nullopt;
  WidthClasses classes;
  if (!classes.find_range(tensor)) return std::nullopt;
  classes.count(tensor);
  return classes.select(tensor, ranks);
}

}  // namespace tornasole::reduce
