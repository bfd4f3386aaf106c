#pragma once

// The collections of a hook: built-in ones per framework, the file's and the user's, in creation order.

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "tornasole/result.h"

namespace tornasole::plan {

struct Collection {
  std::string name = {};
  std::vector<std::string> include_regex = {};
  std::vector<std::string> exclude_regex = {};
  std::set<std::string, std::less<>> tensor_names = {};   // given by name
  std::set<std::string, std::less<>> matched_names = {};  // found by a pattern; the plan's, see Plan::publish_names
  std::optional<ReductionSpec> reductions = {};           // unset: the hook's
  config::Schedules schedules = {};                       // unset modes: the hook's
  bool save_histogram = true;
  bool is_builtin = false;

  // Both kinds, sorted.
  std::vector<std::string> all_names() const;
};

class Collections {
 public:
  // The framework's built-in collections, then the file's settings, include_regex and save_all of the configuration.
  static Result<Collections> make(const config::Config& config);

  // By name or alias; created empty if absent.
  Collection& get(std::string_view name);
  const Collection* find(std::string_view name) const noexcept;
  // In creation order.
  const std::deque<Collection>& all() const noexcept { return collections_; }
  std::deque<Collection>& all() noexcept { return collections_; }

  // The names asked for: the framework's defaults, include_collections, `default`, `all`. What `all` widens it to is
  // decided when the plan is prepared.
  const std::set<std::string, std::less<>>& included() const noexcept { return included_; }
  void include(std::string_view name);

  // The first gradient tape of TensorFlow 2 was entered: what it records is known by name alone, so the patterns for
  // its weights, losses and gradients are added.
  void enter_tape();

  // Back to the built-in collections alone; what is to be saved stays. Not while there is a plan.
  void reset();

  // Raised by every change through a Collection handle or include(), so that a plan knows that it is old.
  std::uint64_t version() const noexcept { return version_; }
  void touch() noexcept { ++version_; }

 private:
  Framework framework_ = Framework::kCpp;
  std::string framework_version_;
  std::deque<Collection> collections_;  // stable addresses
  std::set<std::string, std::less<>> included_;
  std::uint64_t version_ = 0;
};

// The collections saved without being asked for.
std::vector<std::string> default_collections(Framework framework);
// losses, metrics, feature_importance, average_shap, sm_metrics: always raw, never reduced.
bool is_scalar_collection(std::string_view name) noexcept;

}  // namespace tornasole::plan
