// DuplicateShards: two workers train on the same data.

#include <fmt/format.h>

#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/argument_checks.h"
#include "rules/batch_hashes.h"
#include "rules/builtin_rules.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "DuplicateShards";

constexpr std::array kParameters = {
    kInputCollections,
    kTensorRegex,
    Parameter{"patience", ParameterType::kInteger, "3",
              "Two workers must have equal batches at so many steps in a row"},
};

class DuplicateShards final : public Rule {
 public:
  explicit DuplicateShards(const RuleArguments& arguments)
      : choice_(choose_tensors(arguments)), patience_(arguments.integer("patience")) {}

  std::vector<Need> needs() const override { return {batch_need(choice_)}; }

  void look_at(const StepView& step, Findings& findings) override {
    const auto hashes = batch_hashes(step.tensors(), findings);
    if (hashes.size() < 2) return;
    std::map<std::uint64_t, std::string_view> first_of;
    std::map<Pair, std::int64_t> in_a_row;
    for (const auto& [worker, hash] : hashes) {
      const auto [first, is_first] = first_of.emplace(hash, worker);
      if (is_first) continue;
      const Pair pair(first->second, worker);
      const auto before = in_a_row_.find(pair);
      const std::int64_t count = 1 + (before == in_a_row_.end() ? 0 : before->second);
      in_a_row[pair] = count;
      if (count < patience_) continue;
      findings.add(nullptr, static_cast<double>(count), static_cast<double>(patience_),
                   fmt::format("{} and {} have had the same input at {} steps in a row", printable(pair.first),
                               printable(pair.second), count));
    }
    in_a_row_ = std::move(in_a_row);
  }

  void reset() override { in_a_row_.clear(); }

 private:
  using Pair = std::pair<std::string, std::string>;  // the first worker of those with that batch, and another one
  TensorChoice choice_;
  std::int64_t patience_;
  std::map<Pair, std::int64_t> in_a_row_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  TORNASOLE_CHECK(check_at_least(kName, arguments, "patience", 1));
  return std::unique_ptr<Rule>(std::make_unique<DuplicateShards>(arguments));
}

}  // namespace

const RuleType kDuplicateShards = {.name = kName,
                                   .group = "detectors",
                                   .summary = "Workers that should share the data out all train on the same.",
                                   .parameters = kParameters,
                                   .make = make};

}  // namespace tornasole::rules
