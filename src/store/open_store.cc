#include "store/open_store.h"

#include <utility>

#include "store/local/local_store.h"

namespace tornasole::store {
namespace {

// An upload may wait out an outage; a reader has a person waiting.
constexpr double kWriterBudget_s = 600;
constexpr double kReaderBudget_s = 30;

}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& location, OpenStoreOptions options) {
  if (!is_s3_location(location)) {
    return open_local_store(location, {.shared = options.shared, .read_only = options.read_only});
  }
  return open_s3_store(location, {.read_only = options.read_only,
                                  .retry_budget_s = options.read_only ? kReaderBudget_s : kWriterBudget_s,
                                  .environment = std::move(options.environment)});
}

}  // namespace tornasole::store
