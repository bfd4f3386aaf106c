#pragma once

// The collections every framework knows without being told, as data.

#include <optional>
#include <string_view>
#include <vector>

#include "plan/collections.h"

namespace tornasole::plan {

// In creation order, all of them matching nothing but their own patterns. `all` has no pattern before it is included.
std::vector<Collection> builtin_collections(Framework framework, std::string_view framework_version);
// A collection that exists once it is asked for by name: optimizer_gradients, optimizer_variables (outside TensorFlow),
// derived, tensorflow_summaries, and the listings scalars and when_nan. Unset for any other name.
std::optional<Collection> on_request_collection(Framework framework, std::string_view name);

// A list of names that never decides what is saved: scalars, when_nan.
bool is_listing(std::string_view name) noexcept;
// Left out when `all` widens the saved set; it must be named.
bool must_be_named(Framework framework, std::string_view name) noexcept;
// Never due in EVAL and PREDICT: gradients, optimizer_variables.
bool is_training_only(std::string_view name) noexcept;
// The scalar set and tensorflow_summaries: always raw, without histogram, whatever the user set.
bool is_always_raw(std::string_view name) noexcept;
// losses, metrics, sm_metrics: one metric record.
bool is_metric_collection(std::string_view name) noexcept;

}  // namespace tornasole::plan
