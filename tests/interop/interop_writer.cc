// Writes trials through the public interface alone, one for each thing a reader may stumble over, and what has to be
// found in them. interop_test.py opens every one with the real smdebug.
//
//   interop_writer DIRECTORY      (which must not exist)

#include <cstdio>
#include <filesystem>

#include "interop/trial_run.h"
#include "interop/trials.h"

namespace interop {
namespace {

int write_all(const std::string& root) {
  if (std::filesystem::exists(root)) die(root + " exists");
  std::filesystem::create_directories(root);
  std::vector<Trial> trials;
  trials.push_back(workers(root));    // forks: while this process has one thread
  trials.push_back(ours_only(root));  // likewise
  trials.push_back(first_attempt());
  for (Trial (*write)(const std::string&) : {exact_types, widened_types, shapes, odd_names, reductions,
                                             widened_reductions, modes, late_names, watched, failed}) {
    trials.push_back(write(root));
  }
  trials.push_back(flight_recorder(root, /*is_raw=*/true));
  trials.push_back(flight_recorder(root, /*is_raw=*/false));
  write_expectations(root, trials);
  return 0;
}

}  // namespace
}  // namespace interop

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: interop_writer DIRECTORY\n");
    return 2;
  }
  return interop::write_all(arguments[1]);
}
