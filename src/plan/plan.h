#pragma once

// Plan: answers, for a tensor's name in a mode at a step, whether it is wanted and in what form.
//
//   in:  Config, Collections (prepared once, and again when a collection changed), then names, modes, steps
//   out: SaveOrder
//   who: capture/hook.cc, cli (`config check`)
//
// A Plan does not lock: its owner serialises `name_id` and `order`. next_due_step is the precomputed answer that makes
// a step at which nothing is due free.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "plan/collections.h"
#include "tornasole/mode.h"
#include "tornasole/reduction.h"
#include "tornasole/result.h"

namespace tornasole::plan {

// One bit per saved collection, by its position in Plan::saved().
using CollectionBits = std::vector<std::uint64_t>;

// What to do with one tensor at one step; docs/design.md, "one tensor, several collections".
struct SaveOrder {
  bool is_wanted = false;  // any of the rest
  bool save_raw = false;
  bool save_shape = false;  // never together with save_raw
  std::vector<Reduction> reductions = {};
  std::string histogram_collection = {};  // empty: no histogram
  bool is_scalar = false;  // through a collection of the scalar set: TensorBoard scalar if it has one element
  bool is_metric = false;  // one metric record
  std::vector<int> collections = {};  // positions in Plan::saved() of the due collections that contain it
};

struct NameId {
  std::uint32_t value = 0;
  bool operator==(const NameId&) const = default;
};

class Plan {
 public:
  // kInvalid / kBadCollection for a custom collection with neither pattern nor name; kInvalid for a bad pattern or more
  // than 1000 of them. Fills the missing parts of `collections` (schedules, reductions, scalar set) as prepared; they
  // must outlive the plan.
  //
  // `previous` is the plan this one replaces after a change: its names keep their ids and its compiled patterns are
  // reused, so that a change costs one pass over the names. It is left empty; untouched if there is an error.
  static Result<Plan> prepare(const config::Config& config, Collections* collections, Plan* previous = nullptr);
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // Warnings of preparation: included names that do not exist, collections that would save nothing, ...
  const std::vector<std::string>& warnings() const noexcept;
  // The saved collections, in creation order.
  const std::vector<const Collection*>& saved() const noexcept;

  // The first mode step at or after `from` at which any saved collection is due; INT64_MAX if none ever is.
  std::int64_t next_due_step(Mode mode, std::int64_t from) const noexcept;
  // A later mode step: up to it the same collections are due as at `mode_step`; INT64_MAX: for ever.
  std::int64_t same_until(Mode mode, std::int64_t mode_step) const noexcept;
  // The saved collections due at the step, the gradient rule applied.
  CollectionBits due(Mode mode, std::int64_t mode_step) const;
  // The saved collections that are not due but have when_nan patterns in this mode, the gradient rule applied.
  CollectionBits watching(Mode mode, std::int64_t mode_step) const;
  bool has_watch(Mode mode) const noexcept;

  // The id of a name, whose memberships are worked out at its first use. Ids count from 0 in the order of first use.
  NameId name_id(std::string_view name);
  // Adds the names that matched since the last call to the collections' matched_names. Call it before they are read:
  // keeping them sorted at every new name would cost more than all the matching.
  void publish_names();
  // The order for the tensor at a step with these due collections. The reference is valid until the next call.
  const SaveOrder& order(NameId name, const CollectionBits& due);
  // The watching collections whose when_nan patterns match the name, of those in `watching`.
  CollectionBits watched_by(NameId name, Mode mode, const CollectionBits& watching);
  // A tensor given to save_tensor: it belongs to these collections besides the matching ones. One that is not saved yet
  // is created, included and put at the end of saved(): ask for due() again when saved() has grown.
  void add_to_collections(NameId name, std::span<const std::string_view> collections);

  // Whether the patterns of a saved collection, by position, take in the name, which need not be one of the plan's.
  bool matches(std::size_t position, std::string_view name);

  std::size_t name_count() const noexcept;
  std::string_view name(NameId id) const noexcept;
  // Patterns whose match was given up at the limit, each with the first name it happened on. For the health report.
  std::vector<std::string> take_limit_reports();

  struct Coverage {
    std::string collection;
    std::int64_t matched_names = 0;
    std::vector<std::string> unmatched_patterns = {};
    std::vector<std::string> near_misses = {};  // for those patterns, names seen that nearly match
  };
  std::vector<Coverage> coverage() const;

 private:
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

inline bool any(const CollectionBits& bits) noexcept {
  for (const std::uint64_t word : bits) {
    if (word != 0) return true;
  }
  return false;
}

}  // namespace tornasole::plan
