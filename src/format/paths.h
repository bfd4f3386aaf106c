#pragma once

// Names of files in a trial (docs/format.md 1).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tornasole::format {

inline constexpr std::string_view kClaimPath = "claim.smd";
inline constexpr std::string_view kEndMarkerPath = "training_job_end.ts";
inline constexpr std::string_view kHealthDirectory = "tornasole";
inline constexpr std::string_view kRunPath = "tornasole/run.json";
inline constexpr std::string_view kStopRequestPath = "stop_request.json";
inline constexpr std::string_view kAttemptsDirectory = "attempts";

std::string event_path(std::int64_t step, std::string_view worker_file_name);
std::string index_path(std::int64_t step, std::string_view worker_file_name);
std::string collections_path(std::string_view worker_file_name);
std::string health_path(std::string_view worker_file_name);
std::string model_path(std::string_view worker_file_name);

// Device-type workers: /job:a/device:GPU:0 <-> _job-a_device-GPU-0. Other names are unchanged.
std::string encode_worker(std::string_view worker);
std::string decode_worker(std::string_view file_name);
// Letters, digits, . _ - only, not empty, at most 200 characters.
bool is_safe_worker(std::string_view file_name) noexcept;

struct StepFile {
  std::int64_t step = 0;
  std::string worker_file_name;
};
// "000000000007_worker_0.json" or ".tfevents", with or without directories before it; nothing if it is not such a name.
std::optional<StepFile> parse_step_file(std::string_view path, std::string_view suffix);

// smdebug/reductions/<op>/<tensor>. `strip_colons` removes every :<digits> from the tensor's name.
std::string reduction_tensor_name(std::string_view op, std::string_view tensor, bool strip_colons);
struct ReductionName {
  std::string op;  // without abs_
  bool of_absolute = false;
  std::string tensor;
};
// Either prefix, anywhere in the name; nothing for an ordinary name.
std::optional<ReductionName> parse_reduction_tensor_name(std::string_view name);

}  // namespace tornasole::format
