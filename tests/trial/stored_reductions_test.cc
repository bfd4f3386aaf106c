// Reductions that the reference stored are read back as stored, also where its definition is another one than ours.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "reduce/reduce.h"
#include "support/tests_dir.h"
#include "tornasole/trial.h"

namespace tornasole {
namespace {

struct Compared {
  int equal = 0;
  int sample_divisor = 0;  // std and variance of PyTorch: divided by n - 1, where ours divide by n
};

// Every stored reduction whose tensor was saved too.
Compared compare(const std::string& fixture) {
  Compared compared;
  const auto trial = Trial::open(
      {.path = tests_dir() + "/golden/smdebug/" + fixture + "/trial", .on_damage = OnDamage::kFail, .end_delay_s = 0});
  EXPECT_TRUE(trial.ok());
  if (!trial.ok()) return compared;
  const auto names = trial->tensor_names();
  EXPECT_TRUE(names.ok());
  for (const std::string& name : *names) {
    const TrialTensor tensor = *trial->tensor(name);
    for (const ModeStep step : tensor.steps()) {
      const auto value = tensor.value(step);
      const auto stored = tensor.reduction_values(step);
      if (!value.ok() || !stored.ok()) continue;
      const TensorView view(value->dtype(), value->bytes().data(), value->shape());
      const auto n = static_cast<double>(value->element_count());
      for (const auto& [reduction, number] : *stored) {
        const std::string what = name + " " + reduction_name(reduction);
        const double theirs = reduce::to_double(number).value();
        EXPECT_EQ(tensor.reduction_value(step, reduction).value(), theirs) << what << ": not as stored";
        const double ours = reduce::reduce(view, std::span(&reduction, 1)).values.at(0).value.to_double().value();
        const bool is_variance = reduction.kind == ReductionKind::kVariance;
        if (is_variance || reduction.kind == ReductionKind::kStd) {
          const double factor = is_variance ? n / (n - 1) : std::sqrt(n / (n - 1));
          EXPECT_NEAR(theirs, ours * factor, 1e-6 * std::fabs(theirs)) << what;
          ++compared.sample_divisor;
        } else {
          EXPECT_NEAR(theirs, ours, 2e-6 * std::fabs(ours) + 1e-8) << what;
          ++compared.equal;
        }
      }
    }
  }
  return compared;
}

TEST(StoredReductions, OfPlainArraysAreOurs) {
  const Compared compared = compare("core_hook");
  EXPECT_GT(compared.equal, 0);
  EXPECT_EQ(compared.sample_divisor, 0);
}

TEST(StoredReductions, OfPytorchDifferInStdAndVarianceAlone) {
  const Compared compared = compare("pytorch_reductions");
  EXPECT_GT(compared.equal, 10);
  EXPECT_GT(compared.sample_divisor, 2);
}

}  // namespace
}  // namespace tornasole
