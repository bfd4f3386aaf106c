// Watching on a terminal: one screen, drawn again over itself.
//
//   mnist: running, step 1234 (TRAIN 1234), 1235 steps, 12.3 steps/s
//   capture: 1235 steps kept, the training waited 0.4 s (0.3 %)
//   loss TRAIN 0.123
//     ... a small plot
//   findings, checked up to step 1230
//     error: ...

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "cli/number_text.h"
#include "cli/run_state_text.h"
#include "cli/terminal_chart.h"
#include "cli/text_width.h"
#include "cli/verdict_output.h"
#include "cli/watch_view.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxCharts = 3;
constexpr std::size_t kChartExtra = 3;  // title and axis
constexpr std::size_t kMinChart = 3, kMaxChart = 8;

// Lines that fit the terminal: cut at its right edge, so that one line of text is one line of the screen.
class Lines {
 public:
  explicit Lines(const Terminal& terminal) : terminal_(terminal) {}

  void add(std::string_view text, Tone tone = Tone::kPlain) {
    lines_.push_back(terminal_.style.paint(tone, clip_end(printable(text))));
  }
  // Lines that are as wide as the terminal at most, painted or not.
  void add_drawn(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      lines_.emplace_back(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  std::size_t size() const noexcept { return lines_.size(); }
  std::string text(std::size_t most) const {
    std::string text;
    for (std::size_t i = 0; i < std::min(most, lines_.size()); ++i) text += lines_[i] + "\n";
    return text;
  }

 private:
  std::string clip_end(std::string text) const {
    const std::string_view mark = terminal_.has_unicode ? "…" : "...";
    const std::size_t most = terminal_.width - 1;
    if (columns_of(text) <= most) return text;
    while (!text.empty() && columns_of(text) + columns_of(mark) > most) {
      while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U) text.pop_back();
      if (!text.empty()) text.pop_back();
    }
    return text + std::string(mark);
  }

  const Terminal& terminal_;
  std::vector<std::string> lines_;
};

Tone tone_of(RunState state) noexcept {
  if (state == RunState::kFailed) return Tone::kError;
  return state == RunState::kPresumedDead ? Tone::kWarning : Tone::kHeading;
}

std::string head_text(const LiveState& state, const std::string& dir) {
  std::string text = fmt::format("{}: {}, {}", dir, run_status_text(state.status), counted(state.steps, "step"));
  if (state.last_step >= 0) text += fmt::format(", the last is {}", state.last_step);
  if (state.steps_per_s && state.status.state == RunState::kRunning) {
    text += fmt::format(", {:.3g} steps/s", *state.steps_per_s);
  }
  return text;
}

std::string loss_title(const LossLine& loss) {
  const std::string mode = loss.mode == Mode::kGlobal ? "" : fmt::format(" {}", mode_name(loss.mode));
  return fmt::format("{}{}  {} at step {}", loss.name, mode, number_text(loss.points.back().y), loss.points.back().x);
}

void add_findings(Lines* lines, const LiveState& state, std::size_t most) {
  if (state.checked_step < 0) {
    lines->add("findings: nothing was checked yet", Tone::kFaint);
    return;
  }
  lines->add(fmt::format("findings, up to step {} (checked in {:.2g} s)", state.checked_step, state.check_s),
             Tone::kHeading);
  const std::vector<Verdict>& verdicts = state.report.verdicts;
  if (verdicts.empty()) lines->add("  nothing so far");
  const std::size_t shown = verdicts.size() <= most ? verdicts.size() : most - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const Verdict& verdict = verdicts[i];
    lines->add(fmt::format("  {}{}: {}, {}: {}", verdict.symptom_of ? "  " : "", severity_name(verdict.severity),
                           verdict.rule, steps_text(verdict), verdict.message),
               cli::tone_of(verdict.severity));
  }
  if (shown < verdicts.size()) lines->add(fmt::format("  and {} more", verdicts.size() - shown), Tone::kFaint);
}

// As many plots as there is room for, then the numbers of the others.
void add_losses(Lines* lines, const LiveState& state, std::size_t room, const Terminal& terminal) {
  const std::size_t plots = std::min({room / (kMinChart + kChartExtra), state.losses.size(), kMaxCharts});
  const std::size_t height = plots == 0 ? 0 : std::clamp(room / plots - kChartExtra, kMinChart, kMaxChart);
  const std::size_t numbers = std::min(room - plots * (height + kChartExtra), state.losses.size() - plots);
  for (std::size_t i = 0; i < plots + numbers; ++i) {
    const LossLine& loss = state.losses[i];
    lines->add(loss_title(loss), std::isfinite(loss.points.back().y) ? Tone::kPlain : Tone::kError);
    if (i < plots) lines->add_drawn(chart_text({.points = loss.points, .height = height}, terminal));
  }
}

std::size_t window_height() noexcept {
  constexpr std::size_t kUsual = 24;
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : kUsual;
}

class WatchScreen final : public WatchView {
 public:
  explicit WatchScreen(std::string dir) : dir_(std::move(dir)) {}

  void wait_for(const std::string& dir) override { draw("waiting for a run in " + printable(dir) + "\n"); }

  bool show(const LiveState& state, const std::vector<FindingNews>& /*news*/, bool /*is_checked*/) override {
    return draw(watch_screen(state, dir_, Terminal::of(stdout), window_height()));
  }

  bool end(const LiveState& state, const std::string& how, int /*exit_code*/) override {
    const bool is_drawn = draw(watch_screen(state, dir_, Terminal::of(stdout), window_height()));
    std::string text = printable(how) + "; " + printable(state.report.summary) + "\n";
    if (!state.report.verdicts.empty()) text += "tornasole check " + printable(dir_) + " says more\n";
    return is_drawn && print(stdout, text);
  }

 private:
  bool draw(const std::string& frame) {
    std::string text;
    if (drawn_lines_ > 0) text = fmt::format("\r\x1b[{}A", drawn_lines_);
    std::size_t begin = 0;
    drawn_lines_ = 0;
    for (std::size_t end = frame.find('\n'); end != std::string::npos; end = frame.find('\n', begin)) {
      text += frame.substr(begin, end - begin) + "\x1b[K\n";
      begin = end + 1;
      ++drawn_lines_;
    }
    return print(stdout, text + "\x1b[J");
  }

  std::string dir_;
  std::size_t drawn_lines_ = 0;
};

}  // namespace

std::string capture_text(const tools::RunHealth& health) {
  if (health.workers == 0) return {};
  std::string text = counted(health.committed, "step") + " kept";
  std::int64_t dropped = 0;
  std::vector<std::string> causes;
  for (const auto& [cause, count] : health.dropped) {
    dropped += count;
    if (count > 0) causes.push_back(cause);
  }
  if (dropped > 0) text += fmt::format(", {} dropped ({})", dropped, fmt::join(causes, ", "));
  return text + fmt::format(", the training waited {:.2g} s ({:.2g} %)", health.wait_s, 100 * health.wait_share());
}

std::string watch_screen(const LiveState& state, const std::string& dir, const Terminal& terminal, std::size_t height) {
  const std::size_t rows = std::max<std::size_t>(height, 4) - 1;
  Lines lines(terminal);
  lines.add(head_text(state, dir), tone_of(state.status.state));
  if (const std::string capture = capture_text(state.health); !capture.empty()) lines.add("capture: " + capture);
  // Findings come first by importance, losses by place.
  const std::size_t most = std::max<std::size_t>((rows - lines.size()) / 2, 2);
  const std::size_t findings = 1 + std::clamp<std::size_t>(state.report.verdicts.size(), 1, most);
  const std::size_t taken = lines.size() + findings;
  if (rows > taken) add_losses(&lines, state, rows - taken, terminal);
  add_findings(&lines, state, most);
  return lines.text(rows);
}

std::unique_ptr<WatchView> make_watch_screen(std::string dir) { return std::make_unique<WatchScreen>(std::move(dir)); }

}  // namespace tornasole::cli
