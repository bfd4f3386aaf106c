#pragma once

// dump: everything a trial answers, as one JSON document, for comparison with another reader. Written piece by piece,
// so that memory is bounded by the largest value.
//
//   open         only if the trial does not open: status, exception, message; nothing else follows
//   trial        what the trial says of its steps, modes, workers and names
//   collections  as in the files, with the saved tensors that are members
//   tensors      each with its entries: one per global step and worker, with shape, value and stored reductions
//
// A value object has status ok, dtype, shape, size, sha256 (of the row-major little-endian bytes; of texts, each
// followed by a zero byte), and data, or min, max and mean for one of more than max_elements. Non-finite numbers are
// the texts NaN, Infinity, -Infinity; a complex number is [re, im]. A value that cannot be read has status error.

#include <cstdint>
#include <functional>
#include <string_view>

#include "tornasole/result.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

// Takes the next piece of the output; an error ends the work and is returned.
using TextSink = std::function<Status(std::string_view piece)>;

struct DumpOptions {
  // With on_damage kFail unless the caller says else.
  TrialOptions trial = {.on_damage = OnDamage::kFail, .timeout_s = 0};
  std::int64_t max_elements = 1000;
};

// An error is one of the sink alone: a trial that does not open is part of the document. *is_open says whether it did.
Status dump(const DumpOptions& options, const TextSink& sink, bool* is_open = nullptr);

}  // namespace tornasole::tools
