#pragma once

// One function per trial: writes it below `root` and says what a reader has to find.

#include <string>

#include "interop/expectations.h"
#include "interop/samples.h"

namespace interop {

// value_trials.cc
Trial exact_types(const std::string& root);
Trial widened_types(const std::string& root);
Trial shapes(const std::string& root);
Trial odd_names(const std::string& root);
Trial reductions(const std::string& root);
Trial widened_reductions(const std::string& root);

// run_trials.cc; the first two fork, and so come before any that leaves a thread behind
Trial workers(const std::string& root);
Trial ours_only(const std::string& root);
Trial first_attempt();  // what ours_only finds in its directory and moves aside
Trial modes(const std::string& root);
Trial late_names(const std::string& root);
Trial watched(const std::string& root);
Trial flight_recorder(const std::string& root, bool is_raw);
Trial failed(const std::string& root);

}  // namespace interop
