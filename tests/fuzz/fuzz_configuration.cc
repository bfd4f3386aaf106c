// A configuration file of any bytes: a Config that keeps its promises, or errors that name the file.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"
#include "config/environment.h"

namespace {

using namespace tornasole;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_schedule(const config::Schedule& schedule) {
  require(schedule.save_interval >= 1);
  require(std::is_sorted(schedule.save_steps.begin(), schedule.save_steps.end()));
}

void require_promises(const config::Config& config) {
  require(!config.location.empty());
  require(config.location.front() == '/' || config.location.starts_with("s3://"));
  require(config.collections.size() == config.include_collections.size());
  require(config.warnings.size() <= 101);
  require(config.queue_bytes >= 1 && config.reduce_threads >= 1 && config.close_wait_s >= 0);
  for (const config::Schedule& schedule : config.schedules) require_schedule(schedule);
  for (const config::CollectionSettings& collection : config.collections) {
    require(!collection.name.empty());
    for (const auto& schedule : collection.schedules) {
      if (schedule) require_schedule(*schedule);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // No variables and no files: the answer depends on the bytes alone. The same bytes serve as a platform's file too.
  const config::Environment environment({{"CHECKPOINT_CONFIG_FILE_PATH", "/c.json"}},
                                        {{"/c.json", std::string(text.substr(0, 4096))}});
  const config::Environment bare({}, {});
  for (const Framework framework : {Framework::kPytorch, Framework::kXgboost}) {
    const HookOptions options{.framework = framework, .log = nullptr};
    const auto config = config::parse_config(text, "fuzz.json", options, bare);
    const auto errors = config::check_config(text, "fuzz.json", options, bare);
    require(config.ok() == errors.empty());
    if (config.ok()) require_promises(*config);
    for (const Error& error : errors) {
      require(error.code == ErrorCode::kInvalid);
      require(error.message.starts_with("fuzz.json"));
    }
  }
  (void)config::parse_config("{}", "fuzz.json", {.log = nullptr}, environment);
  return 0;
}
