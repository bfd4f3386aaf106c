#pragma once

// What a Plan holds, shared by plan.cc (preparation and decisions) and coverage.cc (what came of it).

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pattern/pattern.h"
#include "plan/name_table.h"
#include "plan/plan.h"

namespace tornasole::plan {

// A pattern in use. Its address is stable: the cache outlives every plan that took it over.
struct UsedPattern {
  explicit UsedPattern(pattern::Pattern compiled) : pattern(std::move(compiled)) {}
  pattern::Pattern pattern;
  bool has_hit_limit = false;
};
using PatternCache = std::map<std::string, std::unique_ptr<UsedPattern>, std::less<>>;

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

struct Plan::State {
  struct SavedCollection {
    Collection* collection = nullptr;
    std::vector<UsedPattern*> include = {};
    std::vector<UsedPattern*> exclude = {};
    std::size_t published = 0;                // how many of `matched` are in matched_names
    std::vector<std::uint32_t> matched = {};  // names that belong to it by pattern, in the order seen
  };
  // One pattern of a saved collection. They lie in one list, in the order of the collections: the first pass over the
  // names of a model is a walk along it.
  struct Wanted {
    pattern::Requirement requirement = {};
    std::uint32_t collection = 0;  // position in `saved`
    UsedPattern* pattern = nullptr;
  };
  // One list of when_nan patterns; many collections share the hook's.
  struct WatchList {
    std::vector<std::string> texts = {};
    std::vector<UsedPattern*> patterns = {};
    std::array<CollectionBits, 4> collections = {};  // by mode: who has this list
  };
  enum class Watched : std::uint8_t { kUnknown, kNo, kYes };

  Framework framework = Framework::kCpp;
  bool has_tensorboard = false;
  ReductionSpec hook_reductions = {};
  config::CompleteSchedules hook_schedules = {};
  Collections* collections = nullptr;
  std::vector<std::string> warnings = {};
  PatternCache patterns = {};
  PatternCache spare_patterns = {};  // of the plan before; those not used again go when preparation ends

  std::vector<SavedCollection> saved = {};
  std::vector<Wanted> wanted = {};
  std::vector<const Collection*> saved_view = {};  // what saved() shows
  // By mode, each distinct schedule once: what next_due_step looks at.
  std::array<std::vector<config::Schedule>, 4> distinct_schedules = {};
  std::array<bool, 4> has_watch = {};
  std::vector<WatchList> watch_lists = {};
  std::vector<std::uint32_t> watched_names = {};  // in the listing when_nan, once published
  std::size_t watched_published = 0;

  NameTable names = {};
  std::size_t words = 0;                    // 64-bit words of a CollectionBits
  std::vector<std::uint64_t> members = {};  // `words` per name, and room for more
  std::vector<Watched> watched = {};        // one per name and watch list
  std::unordered_map<std::string, CollectionBits, StringHash, std::equal_to<>> explicit_names = {};

  // What to do follows from the due collections a name belongs to, and few such sets occur in a run.
  std::map<CollectionBits, SaveOrder> orders = {};
  SaveOrder nothing = {};
  // While there are at most 64 collections: the orders of the last few sets, by a few bits of their hash.
  struct Recent {
    std::uint64_t word = 0;
    const SaveOrder* order = nullptr;
  };
  std::array<Recent, 16> recent = {};
  CollectionBits scratch = {};

  std::vector<std::string> limit_reports = {};

  Result<UsedPattern*> use_pattern(const std::string& where, const std::string& text);
  Status use_patterns(const Collection& collection, SavedCollection* saved_collection);
  Status check_and_complete(Collection* collection);
  Status save_collection(Collection* collection);
  void count_schedules();
  void index_explicit_names();
  bool is_blocked(const Collection& collection, Mode mode) const noexcept;
  bool matches(UsedPattern* used, const pattern::SearchedName& name);
  bool matches_any(const std::vector<UsedPattern*>& list, const pattern::SearchedName& name);
  void make_room(std::size_t names_count);
  void resolve(std::uint32_t id, std::string_view text);
  const SaveOrder& find_order(const CollectionBits& due_members);
  SaveOrder make_order(const CollectionBits& due_members) const;
};

}  // namespace tornasole::plan
