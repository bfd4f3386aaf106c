#include "plan/builtin_collections.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace tornasole::plan {
namespace {

// Kept out of the built-in collections, so that what they hold does not depend on whether the optimizer is watched.
constexpr const char* kOptimizerAndDerived = "^(optimizer_gradient|optimizer_state|derived)/";

struct Builtin {
  const char* name;
  const char* pattern;  // null: filled by name, or not at all
};

constexpr const char* kParameterWeight = "^(?!gradient).*weight";
constexpr const char* kParameterBias = "^(?!gradient).*bias";
constexpr const char* kGradient = "^gradient";

constexpr Builtin kPytorch[] = {
    {"all", nullptr},           {"default", nullptr},     {"weights", kParameterWeight},
    {"biases", kParameterBias}, {"gradients", kGradient}, {"losses", "[Ll]oss_(?!input).*output"},
};
// Without a framework there are no modules to name outputs after: a value saved as `loss` is the loss.
constexpr Builtin kCpp[] = {
    {"all", nullptr},           {"default", nullptr},     {"weights", kParameterWeight},
    {"biases", kParameterBias}, {"gradients", kGradient}, {"losses", "(^|/)[Ll]oss$|[Ll]oss_(?!input).*output"},
};
constexpr Builtin kMxnet[] = {
    {"all", nullptr},           {"default", nullptr},     {"weights", kParameterWeight},
    {"biases", kParameterBias}, {"gradients", kGradient}, {"losses", ".*loss[^_]*_(?!input).*output"},
};
constexpr Builtin kTensorflow[] = {
    {"all", nullptr},       {"default", nullptr}, {"weights", nullptr},    {"biases", kParameterBias},
    {"gradients", nullptr}, {"losses", nullptr},  {"metrics", nullptr},    {"inputs", nullptr},
    {"outputs", nullptr},   {"layers", nullptr},  {"sm_metrics", nullptr}, {"optimizer_variables", nullptr},
};
constexpr Builtin kXgboost[] = {
    {"all", nullptr},
    {"default", nullptr},
    {"losses", "^[^/]+-(?!(auc|aucpr|map|ndcg|pre|accuracy)(@[^/]*)?$)[^/]+$"},
    {"metrics", "^[^/]+-[^/]+$"},
    {"hyperparameters", "^hyperparameters/.*$"},
    {"predictions", "^predictions$"},
    {"labels", "^labels$"},
    {"feature_importance", "^feature_importance/.*"},
    {"average_shap", "^average_shap/(?!bias$).*"},
    {"full_shap", "^full_shap/(?!bias$).*"},
    {"trees", "^trees/.*"},
};

Collection make_builtin(const Builtin& builtin) {
  Collection collection{.name = builtin.name, .exclude_regex = {kOptimizerAndDerived}, .is_builtin = true};
  if (builtin.pattern != nullptr) collection.include_regex.emplace_back(builtin.pattern);
  return collection;
}

template <std::size_t kCount>
std::vector<Collection> make_builtins(const Builtin (&builtins)[kCount]) {
  std::vector<Collection> collections;
  for (const Builtin& builtin : builtins) collections.push_back(make_builtin(builtin));
  return collections;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) noexcept {
  return std::ranges::find(names, name) != names.end();
}

// What is told of the optimizer's gradients unless the user asks for something else: enough for norms and ranges, at a
// few numbers a tensor.
ReductionSpec statistics_only() {
  return {.reductions = {{ReductionKind::kMin},
                         {ReductionKind::kMax},
                         {ReductionKind::kMean},
                         {ReductionKind::kStd},
                         {ReductionKind::kL2}},
          .save_raw_tensor = false};
}

}  // namespace

std::vector<Collection> builtin_collections(Framework framework, std::string_view framework_version) {
  switch (framework) {
    case Framework::kCpp: return make_builtins(kCpp);
    case Framework::kPytorch: return make_builtins(kPytorch);
    case Framework::kMxnet: return make_builtins(kMxnet);
    case Framework::kXgboost: return make_builtins(kXgboost);
    case Framework::kTensorflow: break;
  }
  std::vector<Collection> collections = make_builtins(kTensorflow);
  // Graphs of TensorFlow 1 are searched by variable name, and gradients are no variables there.
  if (framework_version.starts_with("1.")) {
    std::ranges::find(collections, "biases", &Collection::name)->include_regex = {"bias"};
  }
  return collections;
}

std::optional<Collection> on_request_collection(Framework framework, std::string_view name) {
  Collection collection{.name = std::string(name), .is_builtin = true};
  if (is_listing(name)) return collection;
  if (name == "tensorflow_summaries") {
    if (framework == Framework::kTensorflow) return collection;
    return std::nullopt;
  }
  if (!must_be_named(framework, name)) return std::nullopt;
  if (name == "optimizer_gradients") {
    collection.include_regex = {"^optimizer_gradient/"};
    collection.reductions = statistics_only();
  } else if (name == "optimizer_variables") {
    collection.include_regex = {"^optimizer_state/"};
  } else {
    collection.include_regex = {"^derived/"};
    collection.reductions = ReductionSpec{};  // small already: whole, whatever the hook reduces
  }
  return collection;
}

std::vector<std::string> default_collections(Framework framework) {
  switch (framework) {
    case Framework::kTensorflow: return {"metrics", "losses", "sm_metrics"};
    case Framework::kXgboost: return {"metrics"};
    case Framework::kCpp:
    case Framework::kPytorch:
    case Framework::kMxnet: break;
  }
  return {"losses"};
}

bool is_scalar_collection(std::string_view name) noexcept {
  return is_one_of(name, {"losses", "metrics", "feature_importance", "average_shap", "sm_metrics"});
}
bool is_listing(std::string_view name) noexcept { return is_one_of(name, {"scalars", "when_nan"}); }
bool must_be_named(Framework framework, std::string_view name) noexcept {
  if (name == "optimizer_variables") return framework != Framework::kTensorflow;
  return is_one_of(name, {"optimizer_gradients", "derived"});
}
bool is_training_only(std::string_view name) noexcept { return is_one_of(name, {"gradients", "optimizer_variables"}); }
bool is_always_raw(std::string_view name) noexcept {
  return is_scalar_collection(name) || name == "tensorflow_summaries";
}
bool is_metric_collection(std::string_view name) noexcept {
  return is_one_of(name, {"losses", "metrics", "sm_metrics"});
}

}  // namespace tornasole::plan
