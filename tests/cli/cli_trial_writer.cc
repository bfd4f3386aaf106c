// Writes trials for the tests of the command line.
//
//   usage: cli_trial_writer hook-names DIR    the names of kNames through the public hook, which refuses some
//          cli_trial_writer raw-names DIR     all of them through the encoders, as tensor, collection and worker
//          cli_trial_writer sick DIR          a run with NaN and infinities
//          cli_trial_writer healthy DIR       the same without them, its weight a little off from step 2 on
//          cli_trial_writer live DIR          a run that does what standard input says: step, nan, end; else it dies
//          cli_trial_writer large DIR         ten thousand values, for progress bars

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "format/collections_file.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "tornasole/hook.h"

namespace {

using namespace tornasole;

std::vector<std::string> hostile_names() {
  return {"../../x",
          "/",
          std::string("nul\0byte", 8),
          "line\nbreak",
          "carriage\rreturn",
          "esc\x1b[31mred\x1b]0;title\x07",
          "c1\xc2\x9b"
          "31m",
          "bad\xff\xfeutf8",
          "<script>alert(1)</script>&\"'",
          "smdebug/reductions/mean/x",
          "tornasole/reductions/l2/y",
          "bidi\xe2\x80\xae"
          "txt.exe",
          "isolate\xe2\x81\xa6x",
          "tab\tbackspace\x08",
          "del\x7f",
          "{} %s %n $(touch /tmp/x) `id` {0}",
          "wide \xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x98\x80",
          "",
          std::string(5000, 'a'),
          std::string(70'000, 'b'),
          "loss"};
}

int fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

// Everything is wanted, however busy the disk is.
Result<Hook> open_hook(const char* dir) {
  return Hook::open({.out_dir = dir,
                     .save_config = {.save_interval = 1},
                     .save_all = true,
                     .when_full = WhenFull::kBlock,
                     .close_wait_s = 120,
                     .log = nullptr});
}

int write_through_hook(const char* dir) {
  auto hook = open_hook(dir);
  if (!hook) return fail(hook.error().message);
  for (float value = 0; value < 3; ++value) {
    auto step = hook->begin_step(Mode::kTrain);
    for (const std::string& name : hostile_names()) step.save(name, std::vector<float>{value, 1, NAN});
  }
  // An error tells of the names that were refused, which is what they were saved for.
  const auto closed = hook->close();
  return hook->report().committed_steps == 3 && !closed ? 0 : fail("three steps without the refused names expected");
}

void write_file(const std::string& dir, const std::string& path, std::string_view bytes) {
  const std::filesystem::path full = std::filesystem::path(dir) / path;
  std::filesystem::create_directories(full.parent_path());
  std::ofstream(full, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// One step of one worker whose names the hook would not take.
void write_raw_step(const std::string& dir, std::int64_t number, const std::string& worker) {
  std::string events;
  format::Index index{.mode = Mode::kTrain, .mode_step = number, .event_file = format::event_path(number, worker)};
  for (const std::string& hostile : hostile_names()) {
    const std::string name = replace_bad_utf8(hostile);  // no encoder takes others
    const std::vector<float> values = {static_cast<float>(number), 1, 2};
    const std::uint64_t size = values.size() * sizeof(float);
    const auto event =
        format::encode_event({.name = name, .global_step = number, .mode = Mode::kTrain, .mode_step = number},
                             DType::kFloat32, Shape{3}, size);
    if (!event) continue;
    const std::uint64_t offset = events.size();
    const auto header = format::encode_record_header(event->payload_bytes());
    const auto trailer = format::encode_trailer(format::kConstantTrailer);
    events.append(header.data(), header.size());
    events.append(std::string_view(event->before));
    events.append(reinterpret_cast<const char*>(values.data()), size);
    events.append(std::string_view(event->after));
    events.append(trailer.data(), trailer.size());
    index.tensors.push_back({.name = name, .offset = offset, .length = events.size() - offset});
    index.shapes.push_back({.name = name, .original_name = name + "\x1b[7m", .shape = {3}});
  }
  write_file(dir, index.event_file, events);
  write_file(dir, format::index_path(number, worker), std::string_view(format::encode_index(index)));
}

int write_raw(const std::string& dir) {
  const std::string hostile_worker = "w\x1b[2J\n";
  format::CollectionsFile collections{.num_workers = 2};
  for (const std::string& name : hostile_names()) {
    collections.collections.push_back({.name = name, .include_regex = {name}, .tensor_names = {name}});
  }
  for (const std::string& worker : {std::string("worker_0"), hostile_worker}) {
    write_file(dir, format::collections_path(worker), std::string_view(format::encode_collections(collections)));
    for (std::int64_t number = 0; number < 3; ++number) write_raw_step(dir, number, worker);
  }
  write_file(dir, "index/000000000/000000000009_worker_0\x1b[31m.json", "{");
  write_file(dir, std::string(format::kEndMarkerPath), "end");
  return 0;
}

int write_sick(const char* dir, bool is_healthy) {
  auto hook = open_hook(dir);
  if (!hook) return fail(hook.error().message);
  const float inf = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 6; ++i) {
    auto step = hook->begin_step(Mode::kTrain);
    const auto x = static_cast<float>(i);
    step.save("healthy", std::vector<float>{x, x + 1, x + 2});
    if (is_healthy) {
      step.save("weight", std::vector<float>{1, i < 2 ? x : x + 0.01F, 3});
      step.save("loss", 1 / (x + 1));
    } else {
      step.save("weight", std::vector<float>{1, i < 4 ? x : NAN, i < 5 ? 3 : -inf});
      step.save("loss", i < 4 ? 1 / (x + 1) : i == 4 ? inf : NAN);
    }
  }
  if (auto closed = hook->close(); !closed) return fail(closed.error().message);
  return 0;
}

int write_live(const char* dir) {
  auto hook = open_hook(dir);
  if (!hook) return fail(hook.error().message);
  float value = 8;
  for (std::string order; std::getline(std::cin, order);) {
    if (order == "step" || order == "nan") {
      auto step = hook->begin_step(Mode::kTrain);
      step.save("loss", order == "nan" ? NAN : value /= 2);
    } else if (order == "end") {
      if (auto closed = hook->close(); !closed) return fail(closed.error().message);
      return 0;
    }
    std::cout << (hook->stop_requested() ? "stop requested" : "done") << std::endl;
  }
  std::_Exit(3);
}

int write_large(const char* dir) {
  auto hook = open_hook(dir);
  if (!hook) return fail(hook.error().message);
  const std::vector<float> values(20'000, 0.5F);
  for (int i = 0; i < 250; ++i) {
    auto step = hook->begin_step(Mode::kTrain);
    for (int k = 0; k < 40; ++k) step.save(fmt::format("layer{}/weight", k), values);
  }
  if (auto closed = hook->close(); !closed) return fail(closed.error().message);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) {
    const std::string_view what = arguments[1];
    if (what == "hook-names") return write_through_hook(arguments[2]);
    if (what == "raw-names") return write_raw(arguments[2]);
    if (what == "sick") return write_sick(arguments[2], false);
    if (what == "healthy") return write_sick(arguments[2], true);
    if (what == "live") return write_live(arguments[2]);
    if (what == "large") return write_large(arguments[2]);
  }
  return fail("usage: cli_trial_writer hook-names|raw-names|sick|healthy|live|large DIR");
}
