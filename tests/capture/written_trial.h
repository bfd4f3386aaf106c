#pragma once

// What a test finds in a trial: every step with every value, read through the format alone.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "format/collections_file.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "format/run_files.h"
#include "store/store.h"

namespace tornasole::capture {

struct WrittenStep {
  format::Index index;
  std::map<std::string, Tensor> values;
  std::vector<std::string> order;  // names as in the file
};

inline constexpr std::uint64_t kReadLimit = std::uint64_t{1} << 31;

inline std::map<std::int64_t, WrittenStep> read_steps(store::Store& store, const std::string& worker = "worker_0") {
  std::map<std::int64_t, WrittenStep> steps;
  const auto entries = store.list("index", /*recursive=*/true);
  EXPECT_TRUE(entries.ok());
  if (!entries.ok()) return steps;
  for (const store::Entry& entry : *entries) {
    const auto file = format::parse_step_file(entry.path, ".json");
    if (!file || file->worker_file_name != worker) continue;
    const auto text = store.read_all(entry.path, kReadLimit);
    const auto index = format::decode_index(*text);
    EXPECT_TRUE(index.ok()) << entry.path << ": " << index.error().message;
    if (!index.ok()) continue;
    EXPECT_TRUE(index->is_verified);
    WrittenStep& step = steps[file->step];
    step.index = *index;
    for (const format::IndexEntry& tensor : index->tensors) {
      const auto bytes = store.read(index->event_file, tensor.offset, tensor.length);
      EXPECT_TRUE(bytes.ok());
      const auto record = format::decode_record(*bytes, tensor.offset);
      EXPECT_TRUE(record.ok()) << record.error().message;
      EXPECT_EQ(masked_crc32c(record->payload), tensor.crc);
      const auto event = format::decode_event(record->payload);
      EXPECT_TRUE(event.ok()) << event.error().message;
      EXPECT_EQ(event->name, tensor.name);
      EXPECT_EQ(event->global_step, file->step);
      EXPECT_EQ(event->mode, index->mode);
      EXPECT_EQ(event->mode_step, index->mode_step);
      step.values[tensor.name] = event->to_tensor();
      step.order.push_back(tensor.name);
    }
  }
  return steps;
}

inline std::vector<std::int64_t> step_numbers(store::Store& store) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, step] : read_steps(store)) numbers.push_back(number);
  return numbers;
}

inline std::vector<std::string> file_names(store::Store& store) {
  std::vector<std::string> names;
  const auto entries = store.list("", /*recursive=*/true);
  EXPECT_TRUE(entries.ok());
  for (const store::Entry& entry : *entries) names.push_back(entry.path);
  return names;
}

inline format::Health read_health(store::Store& store, const std::string& worker = "worker_0") {
  const auto text = store.read_all(format::health_path(worker), kReadLimit);
  EXPECT_TRUE(text.ok());
  const auto health = text.ok() ? format::decode_health(*text) : Result<format::Health>(Error{});
  EXPECT_TRUE(health.ok());
  return health.ok() ? *health : format::Health{};
}

inline std::map<std::string, format::StoredCollection> read_collections(store::Store& store,
                                                                        const std::string& worker = "worker_0") {
  std::map<std::string, format::StoredCollection> collections;
  const auto text = store.read_all(format::collections_path(worker), kReadLimit);
  EXPECT_TRUE(text.ok());
  if (!text.ok()) return collections;
  const auto file = format::decode_collections(*text);
  EXPECT_TRUE(file.ok() && file->is_verified);
  if (!file.ok()) return collections;
  for (const format::StoredCollection& collection : file->collections) collections[collection.name] = collection;
  return collections;
}

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace tornasole::capture
