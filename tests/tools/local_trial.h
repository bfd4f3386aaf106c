#pragma once

// A made trial in a directory of its own, opened as a Trial.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "store/local/local_store.h"
#include "tools/made_trial.h"
#include "tornasole/trial.h"

namespace tornasole::tools {

class LocalTrial {
 public:
  explicit LocalTrial(const std::string& name) : path_(testing::TempDir() + "tornasole_tools_" + name) {
    std::filesystem::remove_all(path_);
    auto store = store::open_local_store(path_);
    EXPECT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(*store);
    trial_ = std::make_unique<MadeTrial>(*store_);
    trial_->collections();
  }
  ~LocalTrial() { std::filesystem::remove_all(path_); }
  LocalTrial(const LocalTrial&) = delete;
  LocalTrial& operator=(const LocalTrial&) = delete;

  MadeTrial& made() { return *trial_; }
  void step(const MadeStep& step) { trial_->step(step); }
  const std::string& path() const { return path_; }
  // Opened anew with each call; the run is over.
  Trial open() {
    if (!store_->status(format::kEndMarkerPath).ok()) trial_->end();
    auto trial = Trial::open({.path = path_, .timeout_s = 0, .end_delay_s = 0});
    EXPECT_TRUE(trial.ok()) << (trial.ok() ? "" : trial.error().message);
    EXPECT_TRUE(trial->refresh().ok());
    return std::move(*trial);
  }

 private:
  std::string path_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<MadeTrial> trial_;
};

}  // namespace tornasole::tools
