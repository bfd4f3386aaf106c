#pragma once

// Expectations: what a reader has to find in the trials that interop_writer wrote, kept apart from the library, so that
// it cannot repeat the library's mistakes. Written as expectations.json beside the trials; the bytes of all values are
// in expectations.bin.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace interop {

// One value as it is expected to be read.
struct Value {
  std::string name = {};
  std::int64_t step = 0;  // global
  std::string worker = "worker_0";
  std::string dtype = {};  // NumPy's name, or "string"
  std::vector<std::int64_t> shape = {};
  std::string bytes = {};               // row-major; for strings empty
  std::vector<std::string> texts = {};  // for strings
  std::string unreadable = {};          // not empty: smdebug cannot read this type, and why that is so
};

// The reductions of a tensor; the reader's side works the numbers out from the elements.
struct Reduced {
  std::string name = {};
  std::int64_t step = 0;
  std::string worker = "worker_0";
  std::string dtype = {};
  std::vector<std::int64_t> shape = {};
  std::string bytes = {};
  std::vector<std::string> operations = {};  // "min", "abs_l2"
  bool is_exact = false;                     // the results are exact in the element type: compared bit for bit
};

struct ShapeOnly {
  std::string name = {};
  std::int64_t step = 0;
  std::string worker = "worker_0";
  std::vector<std::int64_t> shape = {};
};

struct Step {
  std::int64_t global_step = 0;
  std::string mode = {};
  std::int64_t mode_step = 0;
};

struct Trial {
  std::string directory = {};  // relative to the root
  bool is_ended = true;
  std::vector<std::string> workers = {"worker_0"};
  std::vector<Step> steps = {};
  std::vector<Value> values = {};
  std::vector<Reduced> reductions = {};
  std::vector<ShapeOnly> shapes = {};
  std::map<std::string, std::vector<std::string>> collections = {};  // name -> every name smdebug lists in it
  std::vector<std::string> files = {};                               // that have to exist, relative to the trial
  std::vector<std::pair<std::string, std::string>> texts = {};       // file, text that has to be in it
};

void write_expectations(const std::string& root, const std::vector<Trial>& trials);

}  // namespace interop
