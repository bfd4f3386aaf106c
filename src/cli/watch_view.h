#pragma once

// How `watch` shows a run: a screen that is drawn again in place, or a line for each piece of news, for people or as
// JSON.

#include <memory>
#include <string>
#include <vector>

#include "cli/finding_log.h"
#include "cli/live_run.h"
#include "cli/terminal.h"

namespace tornasole::cli {

class WatchView {
 public:
  virtual ~WatchView() = default;
  WatchView(const WatchView&) = delete;
  WatchView& operator=(const WatchView&) = delete;

  // Nothing is there to be looked at yet.
  virtual void wait_for(const std::string& dir) = 0;
  // After every look, with what a check found meanwhile; `is_checked` if one ran. False if nobody reads any more.
  virtual bool show(const LiveState& state, const std::vector<FindingNews>& news, bool is_checked) = 0;
  // `how` says in words why it ends.
  virtual bool end(const LiveState& state, const std::string& how, int exit_code) = 0;

 protected:
  WatchView() = default;
};

std::unique_ptr<WatchView> make_watch_lines(const Terminal& terminal);
std::unique_ptr<WatchView> make_watch_json();
// `name` is shown as the title.
std::unique_ptr<WatchView> make_watch_screen(std::string dir);

// The whole screen, at most as wide as the terminal and of less than `height` lines, each with a line break.
std::string watch_screen(const LiveState& state, const std::string& dir, const Terminal& terminal, std::size_t height);
// "1200 steps kept, 3 dropped (queue full), the training waited 0.4 s (0.3 %)"; empty if nobody says anything.
std::string capture_text(const tools::RunHealth& health);

}  // namespace tornasole::cli
