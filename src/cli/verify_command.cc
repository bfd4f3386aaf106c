// tornasole verify DIR: reads everything and says what is damaged, missing, partial or cannot be checked.

#include <fmt/format.h>

#include <memory>

#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/progress_bar.h"
#include "cli/run_state_text.h"
#include "cli/table_text.h"
#include "cli/trial_arguments.h"
#include "cli/trial_paths.h"
#include "tools/verify.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kListed = 20;

struct VerifyArguments : TrialArguments {
  bool is_dry_run = false;  // verify writes nothing anyway
  bool shows_all = false;
  bool is_verbose = false;
};

class VerifyText {
 public:
  VerifyText(const Style& style, const VerifyArguments& arguments)
      : style_(style), limit_(arguments.shows_all ? tools::kMaxListed : kListed), is_verbose_(arguments.is_verbose) {}

  std::string text(const tools::VerifyReport& report) {
    std::string out = printable(report.path) + ": " + (report.is_sound() ? "sound" : style_.error("damage")) + "\n";
    std::vector<std::vector<std::string>> rows = {
        {"run", run_status_text(report.run)},
        {"steps", fmt::format("{}", report.steps)},
        {"values", fmt::format("{} ({} read)", report.values, bytes_text(report.bytes))},
        {"damaged", fmt::format("{}", report.damaged.count)},
        {"missing", fmt::format("{}", report.missing.count)},
        {"partial", fmt::format("{}", report.partial.count)},
        {"incomplete", fmt::format("{}", report.incomplete.count)},
        {"unverified",
         fmt::format("{}, {}", counted(report.unverified_values, "value"), counted(report.unverified_files, "file"))}};
    if (is_verbose_ && !report.requests.empty()) rows.push_back({"requests", requests_text(report.requests)});
    out += align(rows, "  ");
    out += damages("damaged", report.damaged, Tone::kError) + damages("missing", report.missing, Tone::kError);
    out += list("partial", report.partial, [](const tools::StepPart& part) {
      return fmt::format("step {} of {}", part.global_step, part.worker);
    });
    out += list("incomplete", report.incomplete, [](std::int64_t step) { return fmt::format("step {}", step); });
    const auto same = [](const std::string& path) { return path; };
    out += list("temporary", report.temporary_files, same);
    out += list("debris", report.debris, same);
    out += list("not of a trial", report.foreign_files, same);
    for (const tools::VerifyReport& attempt : report.attempts) out += "\n" + text(attempt);
    return out;
  }

 private:
  std::string damages(const std::string& title, const tools::Findings<Damage>& findings, Tone tone) const {
    return list(
        title, findings,
        [](const Damage& damage) {
          const std::string where = damage.offset ? fmt::format(" at {}", *damage.offset) : "";
          return fmt::format("{}{}: {}", damage.path, where, damage.what);
        },
        tone);
  }
  template <typename T, typename Text>
  std::string list(const std::string& title, const tools::Findings<T>& findings, const Text& text,
                   Tone tone = Tone::kHeading) const {
    if (findings.empty()) return "";
    std::string out = style_.paint(tone, title) + "\n";
    const std::size_t count = std::min(findings.listed.size(), limit_);
    for (std::size_t i = 0; i < count; ++i) out += "  " + printable(text(findings.listed[i])) + "\n";
    if (findings.count > static_cast<std::int64_t>(count)) {
      out += fmt::format("  and {} more\n", findings.count - static_cast<std::int64_t>(count));
    }
    return out;
  }

  Style style_;
  std::size_t limit_;
  bool is_verbose_;
};

void write_damages(JsonWriter& json, const char* key, const tools::Findings<Damage>& findings) {
  json.key(key).begin_object().key("count").value(findings.count).key("listed").begin_array();
  for (const Damage& damage : findings.listed) {
    json.begin_object().key("path").value(damage.path).key("offset");
    if (damage.offset) {
      json.value(static_cast<std::int64_t>(*damage.offset));
    } else {
      json.null();
    }
    json.key("what").value(damage.what).end_object();
  }
  json.end_array().end_object();
}

void write_paths(JsonWriter& json, const char* key, const tools::Findings<std::string>& findings) {
  json.key(key).begin_object().key("count").value(findings.count).key("listed").begin_array();
  for (const std::string& path : findings.listed) json.value(path);
  json.end_array().end_object();
}

void write_report(JsonWriter& json, const tools::VerifyReport& report) {
  json.begin_object().key("path").value(report.path).key("sound").value(report.is_sound());
  json.key("state").value(run_state_name(report.run.state)).key("reason").value(report.run.reason);
  json.key("steps").value(report.steps).key("values").value(report.values).key("shapes").value(report.shapes);
  json.key("bytes").value(static_cast<std::int64_t>(report.bytes));
  write_damages(json, "damaged", report.damaged);
  write_damages(json, "missing", report.missing);
  json.key("partial").begin_object().key("count").value(report.partial.count).key("listed").begin_array();
  for (const tools::StepPart& part : report.partial.listed) {
    json.begin_object().key("global_step").value(part.global_step).key("worker").value(part.worker).end_object();
  }
  json.end_array().end_object();
  json.key("incomplete").value(report.incomplete.count);
  json.key("unverified_values").value(report.unverified_values).key("unverified_files").value(report.unverified_files);
  write_paths(json, "temporary", report.temporary_files);
  write_paths(json, "debris", report.debris);
  write_paths(json, "foreign", report.foreign_files);
  if (!report.requests.empty()) {
    json.key("requests").begin_object();
    for (const auto& [kind, count] : report.requests) json.key(kind).value(count);
    json.end_object();
  }
  json.key("attempts").begin_array();
  for (const tools::VerifyReport& attempt : report.attempts) write_report(json, attempt);
  json.end_array().end_object();
}

int verify_trial(const VerifyArguments& arguments) {
  if (const Status status = check_directory(arguments.dir); !status) {
    fail(status.error(), arguments.as_json);
    return kBadUse;  // an empty directory is none of a trial either
  }
  ProgressBar progress("verifying", 0);
  const auto report = tools::verify({.path = arguments.dir, .progress = [&](std::uint64_t done, std::uint64_t total) {
                                       progress.update(done, total);
                                       return true;
                                     }});
  progress.finish();
  if (!report) return fail(report.error(), arguments.as_json);
  const int code = report->is_sound_with_attempts() ? kSound : kDamaged;
  if (arguments.as_json) {
    std::string text;
    JsonWriter json(&text);
    write_report(json, *report);
    return answer(text + "\n", code);
  }
  return answer(VerifyText(Style::of(stdout), arguments).text(*report) + begun_note(arguments.dir), code);
}

}  // namespace

void add_verify_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "verify",
      "Read every file of a trial and check it: what is damaged or missing, which steps are partial or incomplete, "
      "what has no checksum. Writes nothing; a run that is being written may be verified.");
  const auto arguments = std::make_shared<VerifyArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_flag("--all", arguments->shows_all, "List up to 1000 of each kind instead of 20");
  command->add_flag("--verbose", arguments->is_verbose, "Also the requests that this took, on an object store");
  command->add_flag("--dry-run", arguments->is_dry_run, "As for repair; verify never writes");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole verify runs/mnist\n"
      "\n"
      "Exit codes: 0 sound; 3 damage; 2 no such directory, or no trial; 1 it cannot be read.");
  command->callback([arguments, exit_code] { *exit_code = verify_trial(*arguments); });
}

}  // namespace tornasole::cli
