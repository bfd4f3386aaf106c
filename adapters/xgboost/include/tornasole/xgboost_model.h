#pragma once

// What a booster tells about itself through the C interface of XGBoost: scores, importances, contributions, trees.

#include <xgboost/c_api.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/result.h"
#include "tornasole/tensor.h"
#include "tornasole/xgboost_json.h"

namespace tornasole::xgboost::detail {

inline constexpr std::array<std::string_view, 5> kImportances = {"weight", "gain", "cover", "total_gain",
                                                                 "total_cover"};
inline constexpr std::string_view kBias = "bias";  // the last column of the contributions

// The error of a call that did not return 0.
inline Error last_error(const char* call) {
  const char* message = XGBGetLastError();
  return {ErrorCode::kInvalid, std::string(call) + ": " + (message == nullptr ? "it failed" : message)};
}

inline std::string version() {
  int major = 0, minor = 0, patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

// gbtree, dart or gblinear.
inline Result<std::string> booster_kind(BoosterHandle booster) {
  bst_ulong length = 0;
  const char* text = nullptr;
  if (XGBoosterSaveJsonConfig(booster, &length, &text) != 0) return last_error("XGBoosterSaveJsonConfig");
  const std::optional<Json> config = Json::parse({text, length});
  const Json* found = config ? &*config : nullptr;
  for (const char* name : {"learner", "gradient_booster", "name"})
    found = found == nullptr ? nullptr : found->find(name);
  if (found == nullptr) return Error{ErrorCode::kUnsupported, "the configuration of the booster names no kind"};
  return found->text();
}

inline Result<std::int64_t> feature_count(BoosterHandle booster) {
  bst_ulong count = 0;
  if (XGBoosterGetNumFeature(booster, &count) != 0) return last_error("XGBoosterGetNumFeature");
  return static_cast<std::int64_t>(count);
}

// One text for each feature, as booster or data were given them; none if they were not.
inline std::vector<std::string> feature_texts(BoosterHandle booster, DMatrixHandle data, const char* field) {
  bst_ulong count = 0;
  const char** texts = nullptr;
  if (XGBoosterGetStrFeatureInfo(booster, field, &count, &texts) != 0) count = 0;
  if (count == 0 && data != nullptr && XGDMatrixGetStrFeatureInfo(data, field, &count, &texts) != 0) count = 0;
  return {texts, texts + count};
}

// The names of the features; f0, f1, ... if neither booster nor data has any.
inline Result<std::vector<std::string>> feature_names(BoosterHandle booster, DMatrixHandle data) {
  std::vector<std::string> names = feature_texts(booster, data, "feature_name");
  const Result<std::int64_t> count = feature_count(booster);
  if (!count) return count.error();
  if (std::cmp_equal(names.size(), *count)) return names;
  names.clear();
  for (std::int64_t i = 0; i < *count; ++i) names.push_back("f" + std::to_string(i));
  return names;
}

// What XGBoost calls f2, where it was not told names, is the third of them.
inline std::string true_name(std::string_view text, std::span<const std::string> names) {
  std::size_t index = names.size();
  if (text.starts_with('f')) {
    const auto [rest, failure] = std::from_chars(text.data() + 1, text.data() + text.size(), index);
    if (failure != std::errc() || rest != text.data() + text.size()) index = names.size();
  }
  return index < names.size() ? names[index] : std::string(text);
}

// "[3]\ttrain-rmse:0.5\teval-rmse:0.6" -> the names and values in it.
inline std::vector<std::pair<std::string, double>> parse_scores(std::string_view text) {
  std::vector<std::pair<std::string, double>> scores;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = item.rfind(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    const std::string_view digits = item.substr(colon + 1);
    double value = 0;
    if (digits == "-nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
      continue;
    }
    scores.emplace_back(item.substr(0, colon), value);
  }
  return scores;
}

// Numbers that belong to XGBoost until the next call with the same booster.
struct Numbers {
  const float* data = nullptr;
  Shape shape;
};

enum class Prediction { kValue = 0, kContributions = 2 };

inline Result<Numbers> predict(BoosterHandle booster, DMatrixHandle data, Prediction type) {
  const std::string config = R"({"type":)" + std::to_string(static_cast<int>(type)) +
                             R"(,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})";
  const bst_ulong* shape = nullptr;
  bst_ulong rank = 0;
  Numbers numbers;
  if (XGBoosterPredictFromDMatrix(booster, data, config.c_str(), &shape, &rank, &numbers.data) != 0) {
    return last_error("XGBoosterPredictFromDMatrix");
  }
  numbers.shape = Shape(std::vector<std::int64_t>(shape, shape + rank));
  return numbers;
}

// The sum of the magnitudes over all rows (and classes), for each feature and the bias.
inline std::vector<float> summed_magnitudes(const Numbers& contributions) {
  const auto columns = static_cast<std::size_t>(contributions.shape.dims().back());
  const auto count = static_cast<std::size_t>(contributions.shape.element_count());
  std::vector<double> sums(columns, 0.0);
  for (std::size_t i = 0; i < count; ++i) sums[i % columns] += std::abs(static_cast<double>(contributions.data[i]));
  return {sums.begin(), sums.end()};
}

using Scores = std::vector<std::pair<std::string, float>>;

// The features that trees use, with one score each, in the order of XGBoost.
inline Result<Scores> feature_scores(BoosterHandle booster, std::string_view type) {
  const std::string config = R"({"importance_type":")" + std::string(type) + R"(","feature_map":""})";
  bst_ulong count = 0, rank = 0;
  const char** features = nullptr;
  const bst_ulong* shape = nullptr;
  const float* values = nullptr;
  if (XGBoosterFeatureScore(booster, config.c_str(), &count, &features, &rank, &shape, &values) != 0) {
    return last_error("XGBoosterFeatureScore");
  }
  if (rank != 1) return Error{ErrorCode::kUnsupported, "importances of several classes"};
  Scores scores;
  for (bst_ulong i = 0; i < count; ++i) scores.emplace_back(features[i], values[i]);
  return scores;
}

// `<type>/<feature>` and its share of the total of its type. Averages over the splits are made here, in XGBoost's own
// precision: three passes over all trees instead of five.
inline Result<std::vector<std::pair<std::string, double>>> importances(BoosterHandle booster, DMatrixHandle data) {
  // A booster uses the names it was told, and knows not those of its data.
  std::vector<std::string> names;
  if (feature_texts(booster, nullptr, "feature_name").empty()) names = feature_texts(booster, data, "feature_name");
  const Result<Scores> weight = feature_scores(booster, "weight");
  if (!weight) return weight.error();
  const Result<Scores> gain = feature_scores(booster, "total_gain");
  if (!gain) return gain.error();
  const Result<Scores> cover = feature_scores(booster, "total_cover");
  if (!cover) return cover.error();
  const auto averages = [&](Scores sums) {
    for (auto& [name, sum] : sums) {
      const auto of_feature = std::ranges::find(*weight, name, &Scores::value_type::first);
      sum /= std::max(1.0F, of_feature == weight->end() ? 1.0F : of_feature->second);
    }
    return sums;
  };
  const std::array<Scores, 5> scores = {*weight, averages(*gain), averages(*cover), *gain, *cover};
  std::vector<std::pair<std::string, double>> shares;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double total = std::accumulate(scores[i].begin(), scores[i].end(), 0.0, [](double sum, const auto& score) {
      return sum + static_cast<double>(score.second);
    });
    for (const auto& [name, score] : scores[i]) {
      shares.emplace_back(std::string(kImportances[i]) + "/" + true_name(name, names),
                          total == 0 ? 0.0 : static_cast<double>(score) / total);
    }
  }
  return shares;
}

// One row for each node, sorted by tree and node; "nan" where a text has no meaning.
struct TreeTable {
  std::vector<std::int64_t> tree, node;
  std::vector<std::string> id, feature, yes, no, missing, category;
  std::vector<double> split, gain, cover;
};

class TreeReader {
 public:
  TreeReader(TreeTable& table, std::int64_t tree, std::span<const std::string> names)
      : table_(table), tree_(tree), names_(names) {}

  bool read(const Json& root) {
    std::vector<const Json*> nodes = {&root};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (const Json* children = nodes[i]->find("children")) {
        for (const Json& child : children->items()) nodes.push_back(&child);
      }
      if (nodes[i]->find("nodeid") == nullptr) return false;
    }
    std::ranges::sort(nodes, {}, [](const Json* node) { return node->find("nodeid")->number(); });
    for (const Json* node : nodes) add(*node);
    return true;
  }

 private:
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static constexpr const char* kNone = "nan";

  static double number_of(const Json& node, const char* name) {
    const Json* found = node.find(name);
    if (found != nullptr && found->kind() == Json::Kind::kArray && !found->items().empty()) found = &found->items()[0];
    return found == nullptr || found->kind() != Json::Kind::kNumber ? kNan : found->number();
  }
  std::string branch_of(const Json& node, const char* way) const {
    const Json* found = node.find(way);
    return found == nullptr ? kNone : std::to_string(tree_) + "-" + found->text();
  }
  std::string feature_of(const Json& node) const {
    const Json* split = node.find("split");
    return split == nullptr ? kNone : true_name(split->text(), names_);
  }
  // ['1', '3']: a list of texts, as Python writes one.
  static std::string category_of(const Json& condition) {
    std::string text = "[";
    for (const Json& one : condition.items()) text += (text.size() > 1 ? ", '" : "'") + one.text() + "'";
    return text + "]";
  }

  void add(const Json& node) {
    const Json* leaf = node.find("leaf");
    const Json* condition = node.find("split_condition");
    const bool is_category = leaf == nullptr && condition != nullptr && condition->kind() == Json::Kind::kArray;
    table_.tree.push_back(tree_);
    table_.node.push_back(static_cast<std::int64_t>(node.find("nodeid")->number()));
    table_.id.push_back(std::to_string(tree_) + "-" + node.find("nodeid")->text());
    table_.feature.push_back(leaf != nullptr ? "Leaf" : feature_of(node));
    table_.split.push_back(leaf != nullptr || is_category ? kNan : number_of(node, "split_condition"));
    table_.yes.push_back(leaf != nullptr ? kNone : branch_of(node, "yes"));
    table_.no.push_back(leaf != nullptr ? kNone : branch_of(node, "no"));
    table_.missing.push_back(leaf != nullptr ? kNone : branch_of(node, "missing"));
    table_.gain.push_back(number_of(node, leaf != nullptr ? "leaf" : "gain"));
    table_.cover.push_back(number_of(node, "cover"));
    table_.category.push_back(is_category ? category_of(*condition) : kNone);
  }

  TreeTable& table_;
  const std::int64_t tree_;
  const std::span<const std::string> names_;
};

// A part of a booster, freed at the end.
class BoosterSlice {
 public:
  BoosterSlice(BoosterHandle booster, int round) { status_ = XGBoosterSlice(booster, round, round + 1, 1, &handle_); }
  ~BoosterSlice() {
    if (status_ == 0) XGBoosterFree(handle_);
  }
  BoosterSlice(const BoosterSlice&) = delete;
  BoosterSlice& operator=(const BoosterSlice&) = delete;
  bool ok() const noexcept { return status_ == 0; }
  BoosterHandle handle() const noexcept { return handle_; }

 private:
  BoosterHandle handle_ = nullptr;
  int status_ = -1;
};

// The trees of the last round. Only that round is read, however many the booster has. XGBoost does not escape names, so
// it is given names that need no escape, and the true ones are put in afterwards.
inline Result<TreeTable> last_trees(BoosterHandle booster, DMatrixHandle data) {
  int rounds = 0;
  if (XGBoosterBoostedRounds(booster, &rounds) != 0) return last_error("XGBoosterBoostedRounds");
  const Result<std::vector<std::string>> names = feature_names(booster, data);
  if (!names) return names.error();
  std::vector<std::string> types = feature_texts(booster, data, "feature_type");
  types.resize(names->size(), "q");
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < names->size(); ++i) plain.push_back("f" + std::to_string(i));
  std::vector<const char*> name_texts, type_texts;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    name_texts.push_back(plain[i].c_str());
    type_texts.push_back(types[i].c_str());
  }

  const BoosterSlice last(booster, rounds - 1);
  if (!last.ok()) return last_error("XGBoosterSlice");
  bst_ulong count = 0;
  const char** dumps = nullptr;
  if (XGBoosterDumpModelExWithFeatures(last.handle(), static_cast<int>(plain.size()), name_texts.data(),
                                       type_texts.data(), 1, "json", &count, &dumps) != 0) {
    return last_error("XGBoosterDumpModelExWithFeatures");
  }
  TreeTable table;
  for (bst_ulong i = 0; i < count; ++i) {
    const std::optional<Json> tree = Json::parse(dumps[i]);
    const auto number = static_cast<std::int64_t>((static_cast<bst_ulong>(rounds) - 1) * count + i);
    if (!tree || !TreeReader(table, number, *names).read(*tree)) {
      return Error{ErrorCode::kUnsupported, "tree " + std::to_string(number) + " was dumped as something unknown"};
    }
  }
  return table;
}

}  // namespace tornasole::xgboost::detail
