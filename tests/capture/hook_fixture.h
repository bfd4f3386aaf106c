#pragma once

// A hook on a store in memory, and the means to look at what it wrote and said.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/open_hook.h"
#include "capture/written_trial.h"
#include "store/memory/memory_store.h"
#include "tornasole/hook.h"

namespace tornasole::capture {

class HookFixture : public ::testing::Test {
 protected:
  Hook open(HookOptions options) {
    options.out_dir = "/nowhere/run";
    options.log = [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) log_.emplace_back(text);
    };
    auto hook = open_hook(std::move(options), {.store = store_->share()});
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  // Names written at a step that begin with the prefix, sorted.
  std::vector<std::string> names_at(std::int64_t step, const std::string& prefix = "") {
    std::vector<std::string> names;
    const auto steps = read_steps(*store_);
    if (!steps.contains(step)) return names;
    for (const auto& [name, value] : steps.at(step).values) {
      if (name.starts_with(prefix)) names.push_back(name);
    }
    return names;
  }
  long warnings_with(const std::string& text) const {
    return std::ranges::count_if(log_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  void renew_store() { store_ = std::make_unique<store::MemoryStore>(); }

  std::unique_ptr<store::MemoryStore> store_ = std::make_unique<store::MemoryStore>();
  std::vector<std::string> log_;
};

}  // namespace tornasole::capture
