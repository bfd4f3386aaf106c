#pragma once

// Plans for tests: a configuration in, a prepared plan out.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tornasole::plan {

struct Prepared {
  config::Config config = {};
  std::unique_ptr<Collections> collections = {};  // a plan keeps its address
  std::unique_ptr<Plan> plan = {};
};

inline Prepared make_collections(config::Config config) {
  Prepared prepared{.config = std::move(config)};
  auto collections = Collections::make(prepared.config);
  EXPECT_TRUE(collections) << collections.error().message;
  if (collections) prepared.collections = std::make_unique<Collections>(*std::move(collections));
  return prepared;
}

inline void prepare(Prepared* prepared) {
  auto plan = Plan::prepare(prepared->config, prepared->collections.get(), prepared->plan.get());
  ASSERT_TRUE(plan) << plan.error().message;
  prepared->plan = std::make_unique<Plan>(*std::move(plan));
}

inline Prepared make_plan(config::Config config) {
  Prepared prepared = make_collections(std::move(config));
  if (prepared.collections) prepare(&prepared);
  return prepared;
}

inline config::Config every_step(Framework framework) {
  config::Config config{.framework = framework};
  for (config::Schedule& schedule : config.schedules) schedule.save_interval = 1;
  return config;
}

inline std::vector<std::string> saved_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Collection* collection : plan.saved()) names.push_back(collection->name);
  return names;
}

// The saved collections a name belongs to, when all are due.
inline std::vector<std::string> members(Plan* plan, std::string_view name) {
  std::vector<std::string> names;
  const CollectionBits all((plan->saved().size() + 63) / 64, ~std::uint64_t{0});
  for (const int position : plan->order(plan->name_id(name), all).collections) {
    names.push_back(plan->saved()[static_cast<std::size_t>(position)]->name);
  }
  return names;
}

inline std::vector<std::string> due_names(const Plan& plan, const CollectionBits& bits) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan.saved().size(); ++i) {
    if (i / 64 < bits.size() && ((bits[i / 64] >> (i % 64)) & 1) != 0) names.push_back(plan.saved()[i]->name);
  }
  return names;
}

}  // namespace tornasole::plan
