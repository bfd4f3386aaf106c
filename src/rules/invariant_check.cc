// InvariantCheck: something that always held in runs known to be good does not hold in this one.

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "config/environment.h"
#include "config/locations.h"
#include "pattern/pattern.h"
#include "rules/content_hashes.h"
#include "rules/invariant_check.h"
#include "rules/invariant_facts.h"
#include "rules/rule_errors.h"
#include "rules/tensor_states.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kName = "InvariantCheck";
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

constexpr std::array kParameters = {
    Parameter{"invariants", ParameterType::kText, "", "A file that tornasole learn made from good runs; required"},
};

struct Watched {
  Invariant invariant;
  pattern::Pattern pattern;
  std::int64_t broken = 0;
  bool has_matched = false;
  bool is_missed = false;  // it was told that no tensor is of this pattern
};

class InvariantCheck final : public Rule {
 public:
  explicit InvariantCheck(std::vector<Watched> watched) : watched_(std::move(watched)) {}

  std::vector<Need> needs() const override { return {invariant_need()}; }

  void look_at(const StepView& step, Findings& findings) override {
    const StepIndex index = index_of(step);
    std::map<std::string_view, std::vector<const StepTensor*>> copies;
    for (const StepTensor* tensor : step.tensors()) copies[tensor->name].push_back(tensor);
    for (const auto& [name, tensors] : copies) {
      const std::vector<std::size_t>& own = invariants_of(name, step.mode());
      for (const StepTensor* tensor : tensors) look_at_tensor(*tensor, step.mode(), own, index, findings);
      look_at_workers(tensors, own, findings);
    }
    look_at_absent(step, copies, findings);
  }

  std::map<std::string, std::string> details() const override {
    std::string text;
    JsonWriter json(&text);
    json.begin_array();
    for (const Watched& one : watched_) {
      if (one.broken == 0) continue;
      json.begin_object().key("kind").value(invariant_kind_name(one.invariant.kind));
      json.key("tensor").value(one.invariant.tensor).key("mode").value(mode_name(one.invariant.mode));
      json.key("support").value(one.invariant.support).key("broken").value(one.broken).end_object();
    }
    json.end_array();
    return {{"invariants", fmt::format("{}", watched_.size())}, {"broken", text}};
  }

  void reset() override {
    last_.clear();
    names_.clear();
    for (Watched& one : watched_) one.broken = 0, one.has_matched = one.is_missed = false;
  }

 private:
  struct Last {
    std::optional<std::int64_t> hash = {};
    std::optional<Shape> shape = {};
  };
  struct Break {
    std::optional<double> value = {}, threshold = {};
    std::string what = {};
  };

  const std::vector<std::size_t>& invariants_of(std::string_view name, Mode mode) {
    const auto [found, is_new] = names_.try_emplace({std::string(name), mode});
    if (!is_new) return found->second;
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (watched_[i].invariant.mode != mode) continue;
      if (watched_[i].pattern.search(name) != pattern::Match::kYes) continue;
      found->second.push_back(i);
      watched_[i].has_matched = true;
    }
    return found->second;
  }

  void look_at_tensor(const StepTensor& tensor, Mode mode, const std::vector<std::size_t>& own, const StepIndex& index,
                      Findings& findings) {
    findings.count_datapoint();
    Last& last = last_.of(tensor, mode);
    const auto hash = content_hash_of(tensor);
    for (const std::size_t place : own) {
      const Invariant& invariant = watched_[place].invariant;
      if (const auto broken = look_at_one(tensor, invariant, last, hash, index)) {
        report(place, &tensor, tensor.name, *broken, findings);
      }
    }
    if (hash) last.hash = hash;
    if (tensor.shape) last.shape = tensor.shape;
  }

  // How it is broken by a tensor; nothing if it holds, cannot be told or is not about one tensor.
  static std::optional<Break> look_at_one(const StepTensor& tensor, const Invariant& invariant, const Last& last,
                                          std::optional<std::int64_t> hash, const StepIndex& index) {
    switch (invariant.kind) {
      case InvariantKind::kFinite:
        if (is_finite(tensor).value_or(true)) return std::nullopt;
        return Break{.value = bad_elements(tensor), .threshold = 0, .what = "it is not finite"};
      case InvariantKind::kShape: {
        const std::optional<Shape>& usual = invariant.shape ? invariant.shape : last.shape;
        if (!usual || !tensor.shape || *usual == *tensor.shape) return std::nullopt;
        return Break{.what = fmt::format("its shape is {}, not {}", tensor.shape->to_string(), usual->to_string())};
      }
      case InvariantKind::kDType:
        if (!tensor.dtype || invariant.dtype == dtype_name(*tensor.dtype)) return std::nullopt;
        return Break{.what = fmt::format("its type is {}, not {}", dtype_name(*tensor.dtype), invariant.dtype)};
      case InvariantKind::kChanges:
        if (!hash || !last.hash || *hash != *last.hash) return std::nullopt;
        return Break{.what = "it is the same as at the step before"};
      case InvariantKind::kConstant:
        if (!hash || !last.hash || *hash == *last.hash) return std::nullopt;
        return Break{.what = "it is not the same as at the step before"};
      case InvariantKind::kRange:
        return outside(invariant, finite(tensor.stats[*parse_stat(invariant.statistic)]), invariant.statistic);
      case InvariantKind::kRatio: {
        const auto ratio = gradient_ratio(tensor, index);
        return outside(invariant, ratio ? std::optional(std::pow(10, *ratio)) : std::nullopt,
                       "l2 over that of what it is the gradient of");
      }
      default: return std::nullopt;
    }
  }

  static std::optional<double> bad_elements(const StepTensor& tensor) {
    const auto nan = tensor.stats[Stat::kNan];
    const auto inf = tensor.stats[Stat::kInf];
    return nan && inf ? std::optional(*nan + *inf) : std::nullopt;
  }
  // What is not finite is the business of that kind alone.
  static std::optional<double> finite(std::optional<double> number) {
    return number && std::isfinite(*number) ? number : std::nullopt;
  }

  static std::optional<Break> outside(const Invariant& invariant, std::optional<double> number, std::string_view what) {
    if (!number || !(*number < *invariant.low || *number > *invariant.high)) return std::nullopt;
    const double limit = *number < *invariant.low ? *invariant.low : *invariant.high;
    return Break{.value = number,
                 .threshold = limit,
                 .what = fmt::format("its {} is {:.6g}, which is not from {:.6g} to {:.6g}", what, *number,
                                     *invariant.low, *invariant.high)};
  }

  void look_at_workers(const std::vector<const StepTensor*>& copies, const std::vector<std::size_t>& own,
                       Findings& findings) {
    if (copies.size() < 2) return;
    std::map<std::int64_t, const StepTensor*> first_with;
    for (const StepTensor* tensor : copies) {
      const auto hash = content_hash_of(*tensor);
      if (!hash) return;
      const auto [same, is_new] = first_with.try_emplace(*hash, tensor);
      for (const std::size_t place : own) {
        const InvariantKind kind = watched_[place].invariant.kind;
        if (kind == InvariantKind::kEqualWorkers && is_new && first_with.size() > 1) {
          report(place, tensor, tensor->name,
                 {.what = fmt::format("that of {} differs from that of {}", printable(tensor->worker),
                                      printable(copies.front()->worker))},
                 findings);
        } else if (kind == InvariantKind::kDistinctWorkers && !is_new) {
          report(place, tensor, tensor->name,
                 {.what = fmt::format("that of {} is the same as that of {}", printable(tensor->worker),
                                      printable(same->second->worker))},
                 findings);
        }
      }
    }
  }

  // Names seen in the mode before that are not there now; patterns that no name has ever matched, once.
  void look_at_absent(const StepView& step, const std::map<std::string_view, std::vector<const StepTensor*>>& copies,
                      Findings& findings) {
    for (const auto& [key, own] : names_) {
      if (key.second != step.mode() || copies.contains(key.first)) continue;
      for (const std::size_t place : own) {
        if (watched_[place].invariant.kind == InvariantKind::kPresent) {
          report(place, nullptr, key.first, {.what = "it is not there"}, findings);
        }
      }
    }
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      Watched& one = watched_[i];
      if (one.invariant.kind != InvariantKind::kPresent || one.invariant.mode != step.mode()) continue;
      if (one.has_matched || one.is_missed) continue;
      one.is_missed = true;
      report(i, nullptr, one.invariant.tensor, {.what = "no tensor of this pattern is there"}, findings);
    }
  }

  void report(std::size_t place, const StepTensor* tensor, std::string_view name, const Break& broken,
              Findings& findings) {
    Watched& one = watched_[place];
    ++one.broken;
    findings.add(
        tensor, broken.value, broken.threshold,
        fmt::format("{}: {}; {} of {} held {} times in good runs", printable(name), broken.what,
                    invariant_kind_name(one.invariant.kind), printable(one.invariant.tensor), one.invariant.support));
  }

  std::vector<Watched> watched_;
  std::map<std::pair<std::string, Mode>, std::vector<std::size_t>> names_;  // which invariants are about a name
  TensorStates<Last> last_;
};

Result<std::unique_ptr<Rule>> make(const RuleArguments& arguments, const RuleContext& /*context*/) {
  const auto environment = config::Environment::from_process();
  const std::string path = config::expand_home(std::string(arguments.text("invariants")), environment);
  if (path.empty()) {
    return insufficient_error(kName, "invariants is missing: the file that tornasole learn made from good runs");
  }
  auto text = environment.read_file(path, kMaxFileBytes);
  if (!text) return invalid_error("rule {}: invariants: {}", kName, text.error().message);
  auto invariants = Invariants::parse(*text, path);
  if (!invariants) return invalid_error("rule {}: {}", kName, invariants.error().message);
  std::vector<Watched> watched;
  for (Invariant& invariant : invariants->list) {
    TORNASOLE_TRY(pattern::Pattern pattern, pattern::Pattern::compile(invariant.tensor));
    watched.push_back({.invariant = std::move(invariant), .pattern = std::move(pattern)});
  }
  return std::unique_ptr<Rule>(std::make_unique<InvariantCheck>(std::move(watched)));
}

}  // namespace

const RuleType kInvariantCheck = {.name = kName,
                                  .group = "detectors",
                                  .summary = "Something that always held in runs known to be good does not hold.",
                                  .parameters = kParameters,
                                  .make = make};

}  // namespace tornasole::rules
