// A whole trial from one input: the bytes are cut into files of a memory store, which is then opened and read. Every
// answer is fine; a crash, a hang or a value that two ways of reading disagree about is not.
//
// The input is a sequence of files: a byte that says which one, two bytes of length, and the content.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/environment.h"
#include "format/paths.h"
#include "fuzz_check.h"
#include "store/memory/memory_store.h"
#include "trial/open_trial.h"

using namespace tornasole;

namespace {

std::string path_of(unsigned which) {
  const std::int64_t step = (which >> 3U) % 4;
  const char* const worker = (which >> 5U) % 2 == 0 ? "worker_0" : "_job-a_device-GPU-0";
  switch (which % 8) {
    case 0:
    case 1: return format::index_path(step, worker);
    case 2:
    case 3: return format::event_path(step, worker);
    case 4:
    case 5: return format::collections_path(worker);
    case 6: return format::health_path(worker);
    default: return std::string(format::kEndMarkerPath);
  }
}

void write_files(std::string_view input, store::Store& store) {
  while (input.size() >= 3) {
    const auto which = static_cast<unsigned char>(input[0]);
    const std::size_t length = static_cast<unsigned char>(input[1]) + 256U * static_cast<unsigned char>(input[2]);
    input.remove_prefix(3);
    const std::string_view content = input.substr(0, length);
    input.remove_prefix(content.size());
    (void)store.create_exclusive(path_of(which), content);
  }
}

void read_all(const Trial& trial) {
  std::size_t count = 0;
  const Status swept = trial.sweep({.reductions = true}, [&](const SweptValue& value) {
    FUZZ_CHECK((value.value == nullptr) != (value.error == nullptr));
    const auto tensor = trial.tensor(value.name);
    FUZZ_CHECK(tensor.ok());
    const ModeStep step{Mode::kGlobal, value.global_step.number};
    const auto again = value.reduction ? tensor->reduction_tensor(step, *value.reduction, value.worker)
                                       : tensor->value(step, value.worker);
    FUZZ_CHECK(again.ok() == (value.value != nullptr));
    FUZZ_CHECK(!again.ok() || *again == Tensor(*value.value));
    return ++count < 200;
  });
  FUZZ_CHECK(swept.ok());
  const auto names = trial.tensor_names();
  FUZZ_CHECK(names.ok());
  for (std::size_t i = 0; i < std::min<std::size_t>(names->size(), 20); ++i) {
    const auto tensor = trial.tensor((*names)[i]);
    FUZZ_CHECK(tensor.ok());
    const auto steps = tensor->steps(Mode::kGlobal, StepFilter::kIncludingIncomplete);
    FUZZ_CHECK(!steps.empty());
    (void)tensor->shape(steps.front());
    (void)tensor->reduction_values(steps.back());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const store::MemoryStore files;
  const auto writer = files.share();
  write_files(fuzz_text(data, size), *writer);
  for (const OnDamage on_damage : {OnDamage::kSkip, OnDamage::kFail}) {
    auto trial = trial::open_trial({.path = "/fuzz", .on_damage = on_damage, .timeout_s = 0, .end_delay_s = 0},
                                   config::Environment(std::map<std::string, std::string>()),
                                   {.store = files.share(),
                                    .sleep = [](double) {},
                                    .probe = [](const ProcessIdentity&) { return std::optional<bool>(true); },
                                    .threads = 1});
    if (!trial.ok()) {
      FUZZ_CHECK(!trial.error().message.empty());
      continue;
    }
    read_all(*trial);
    FUZZ_CHECK(trial->refresh().ok() || on_damage == OnDamage::kFail);
  }
  return 0;
}
