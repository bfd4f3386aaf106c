#pragma once

// Invariants: what held at every step of runs known to be good, to be looked for in others.
//
//   auto learned = tornasole::learn_invariants(trials);
//   if (!learned) return fail(learned.error());
//   write("invariants.jsonl", learned->to_text());
//   auto rule = tornasole::make_rule("InvariantCheck", {{"invariants", "invariants.jsonl"}}, {.base = &*trial});
//
// A file has a line of JSON that says what it is, {"tornasole_invariants": 1, "trials": [...], "steps": N}, and one for
// each invariant: {"kind", "tensor", "mode", "parameters", "support"}.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"
#include "tornasole/trial.h"

namespace tornasole {

enum class InvariantKind : std::uint8_t {
  kFinite,           // no NaN, no infinity
  kShape,            // always this shape; without one: a tensor keeps the shape it had first
  kDType,            // always this type
  kChanges,          // never twice the same in a row
  kConstant,         // always the same
  kEqualWorkers,     // all workers have the same
  kDistinctWorkers,  // no two workers have the same
  kRange,            // a statistic stays between low and high
  kRatio,            // the l2 of a gradient over that of its tensor stays between low and high
  kPresent,          // saved at every step of the mode
};
// "finite", "shape", "dtype", "changes", "constant", "equal_workers", "distinct_workers", "range", "ratio", "present".
TORNASOLE_EXPORT std::string_view invariant_kind_name(InvariantKind kind) noexcept;

struct Invariant {
  InvariantKind kind = InvariantKind::kFinite;
  std::string tensor = {};  // a pattern for names: those it was learned from, with any number for each of theirs
  Mode mode = Mode::kGlobal;
  std::optional<Shape> shape = {};            // of kShape
  std::string dtype = {};                     // of kDType
  std::string statistic = {};                 // of kRange: "min", "max", "mean", "l2"
  std::optional<double> low = {}, high = {};  // of kRange and kRatio
  std::int64_t support = 0;                   // how often it was seen to hold
};

struct Invariants {
  std::vector<std::string> trials = {};  // learned from
  std::int64_t steps = 0;                // of all of them
  std::vector<Invariant> list = {};

  std::string to_text() const;
  // kInvalid, with file, line, key, value and what is allowed, for anything but what to_text makes.
  TORNASOLE_EXPORT static Result<Invariants> parse(std::string_view text, std::string_view file);
};

// An invariant is kept if it held each time in each trial, and at least five times. Reads all values once.
TORNASOLE_EXPORT Result<Invariants> learn_invariants(std::span<Trial* const> trials);

}  // namespace tornasole
