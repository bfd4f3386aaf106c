// stoptraining: leaves a request in the trial, which the hook of the training honours at its next saved step.

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/errors.h"
#include "base/utf8.h"
#include "config/environment.h"
#include "config/locations.h"
#include "format/paths.h"
#include "format/run_files.h"
#include "rules/action.h"
#include "store/open_store.h"
#include "store/store_path.h"

namespace tornasole::rules {
namespace {

// A temporary file of this age belongs to nobody who still writes.
constexpr double kStaleS = 60;

Result<std::unique_ptr<store::PendingFile>> create_request(store::Store& store) {
  auto file = store.create(format::kStopRequestPath);
  if (file) return file;
  const std::string temporary = std::string(format::kStopRequestPath) + std::string(store::kTemporarySuffix);
  const auto left = store.status(temporary);
  if (!left) return file;
  TORNASOLE_TRY(const double now_s, store.now_s());
  if (now_s - left->modified_s < kStaleS) return file;
  TORNASOLE_CHECK(store.remove(temporary));
  return store.create(format::kStopRequestPath);
}

class StopAction final : public Action {
 public:
  StopAction(std::string prefix, const RuleActionOptions& options) : prefix_(std::move(prefix)), options_(options) {}

  Status run(const ActionEvent& event) override {
    if (!options_.trial_name.starts_with(prefix_)) {
      if (options_.log) {
        options_.log(
            fmt::format("rule {}: the training is not stopped: the name of the trial, \"{}\", does not begin "
                        "with \"{}\"",
                        event.rule, printable(options_.trial_name), printable(prefix_)));
      }
      return {};
    }
    const auto environment = config::Environment::from_process();
    TORNASOLE_TRY(const std::string root,
                  config::absolute_location(config::expand_home(options_.trial_path, environment)));
    // Who shares the trial with a group shares the request too. The trial is never made by asking to stop it.
    struct stat status{};
    if (!store::is_s3_location(root) && stat(root.c_str(), &status) != 0) return errno_error(errno, printable(root));
    TORNASOLE_TRY(const std::unique_ptr<store::Store> store,
                  store::open_store(root, {.shared = (status.st_mode & S_IWGRP) != 0,
                                           .environment = store::s3_environment(environment)}));
    TORNASOLE_TRY(const std::unique_ptr<store::PendingFile> file, create_request(*store));
    const format::StopRequest request{.reason = event.violation.message,
                                      .rule = std::string(event.rule),
                                      .step = event.violation.global_step.number,
                                      .time = event.time_s,
                                      .prefix = prefix_};
    TORNASOLE_CHECK(file->append(ByteView(format::encode_stop_request(request))));
    return file->publish(/*replace=*/true);
  }

 private:
  std::string prefix_;
  const RuleActionOptions& options_;
};

}  // namespace

MadeAction make_stop_action(const Json& prefix, const RuleActionOptions& options) {
  if (prefix.as_string() == nullptr) {
    return invalid_error("stoptraining: \"training_job_prefix\" is a text, which may be empty, not {}",
                         prefix.to_message());
  }
  return std::unique_ptr<Action>(std::make_unique<StopAction>(*prefix.as_string(), options));
}

}  // namespace tornasole::rules
