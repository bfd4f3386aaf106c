#include "rules/tree_shape.h"

#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tornasole::rules {
namespace {

// Nodes of a round and where their branches lead, by their ids ("2-5": node 5 of tree 2).
using Branches = std::unordered_map<std::string_view, std::array<std::string_view, 2>>;

// By levels, from the nodes that are nobody's branch. Each node is visited once, so a damaged table ends, too.
TreeShape walk(const Branches& branches) {
  std::unordered_set<std::string_view> children;
  for (const auto& [id, next] : branches) children.insert(next.begin(), next.end());
  std::vector<std::string_view> level;
  for (const auto& [id, next] : branches) {
    if (!children.contains(id)) level.push_back(id);
  }
  TreeShape shape{.depth = -1, .trees = static_cast<std::int64_t>(level.size())};
  std::unordered_set<std::string_view> seen(level.begin(), level.end());
  while (!level.empty()) {
    ++shape.depth;
    std::vector<std::string_view> below;
    for (const std::string_view id : level) {
      bool is_leaf = true;
      for (const std::string_view child : branches.at(id)) {
        if (!branches.contains(child)) continue;
        is_leaf = false;
        if (seen.insert(child).second) below.push_back(child);
      }
      shape.leaves += is_leaf ? 1 : 0;
    }
    level = std::move(below);
  }
  return shape;
}

}  // namespace

std::optional<TreeShape> tree_shape(const Tensor* ids, const Tensor* yes, const Tensor* no) {
  if (ids == nullptr || yes == nullptr || no == nullptr) return std::nullopt;
  const std::size_t nodes = ids->texts().size();
  if (nodes == 0 || yes->texts().size() != nodes || no->texts().size() != nodes) return std::nullopt;
  Branches branches;
  for (std::size_t i = 0; i < nodes; ++i) branches[ids->texts()[i]] = {yes->texts()[i], no->texts()[i]};
  return walk(branches);
}

}  // namespace tornasole::rules
