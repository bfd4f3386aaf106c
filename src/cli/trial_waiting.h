#pragma once

// Waiting for a run: until it begins, and while it shows signs of life.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tornasole/result.h"
#include "tornasole/trial.h"

namespace tornasole::cli {

void sleep_seconds(double seconds);

class Patience {
 public:
  explicit Patience(double timeout_s) : timeout_ns_(timeout_s * 1e9) { renew(); }
  void renew();
  bool is_over() const;

 private:
  double timeout_ns_;
  std::int64_t since_ns_ = 0;
};

struct TrialWait {
  std::string dir = {};
  double timeout_s = 300;
  double poll_s = 1;
  std::optional<std::int64_t> first_step = {}, end_step = {};  // all that is loaded
  std::function<void()> on_wait = {};                          // called once, if it is not there at once
};

// Opens a trial that may not have begun. A directory that is not there yet, or holds nothing yet but signs of a run
// that begins, may become a trial; a file or other content never will. kNotYet after timeout_s.
Result<Trial> wait_for_trial(const TrialWait& wait);

}  // namespace tornasole::cli
