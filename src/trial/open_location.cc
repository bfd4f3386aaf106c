#include "trial/open_location.h"

#include "config/environment.h"
#include "store/open_store.h"

namespace tornasole::trial {

Result<std::unique_ptr<store::Store>> open_location(const std::string& location, bool read_only) {
  return store::open_store(
      location, {.read_only = read_only, .environment = store::s3_environment(config::Environment::from_process())});
}

}  // namespace tornasole::trial
