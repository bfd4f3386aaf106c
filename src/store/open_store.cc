#include "store/open_store.h"

#include <utility>

#include "base/errors.h"
#include "store/local/local_store.h"
#include "store/spool/spool_store.h"

namespace tornasole::store {
namespace {

constexpr double kWriterBudget_s = 600;
constexpr double kReaderBudget_s = 30;
// With a spool there is a better place to wait than the queue in memory.
constexpr double kSpoolBudget_s = 5;

}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& location, OpenStoreOptions options) {
  if (!is_s3_location(location)) {
    return open_local_store(location, {.shared = options.shared, .read_only = options.read_only});
  }
  // An upload may wait out an outage; a reader has a person waiting.
  const bool has_spool = !options.spool.directory.empty() && !options.read_only;
  const double usual_s = options.read_only ? kReaderBudget_s : has_spool ? kSpoolBudget_s : kWriterBudget_s;
  TORNASOLE_TRY(auto store, open_s3_store(location, {.read_only = options.read_only,
                                                     .retry_budget_s = options.retry_budget_s.value_or(usual_s),
                                                     .environment = std::move(options.environment)}));
  if (!has_spool) return store;
  options.spool.location = location;
  return open_spool_store(std::move(store), std::move(options.spool));
}

}  // namespace tornasole::store
