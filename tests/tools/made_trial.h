#pragma once

// MadeTrial: a trial written by a test, file by file, through the format alone; and ways to damage it.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "format/collections_file.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "format/run_files.h"
#include "store/store.h"
#include "tornasole/tensor.h"

namespace tornasole::tools {

struct MadeValue {
  std::string name;
  Tensor tensor;
};

struct MadeStep {
  std::int64_t step = 0;
  std::vector<MadeValue> values = {};
  Mode mode = Mode::kTrain;
  std::int64_t mode_step = -1;  // -1: the step itself
  std::string worker = "worker_0";
  bool is_partial = false;
  bool has_checksums = true;
  std::vector<format::ShapeEntry> shapes = {};
};

template <typename T>
Tensor tensor_of(std::vector<T> values, Shape shape) {
  return Tensor(TensorView::of(values, std::move(shape)));
}
template <typename T>
Tensor tensor_of(std::vector<T> values) {
  return Tensor(TensorView::of(values));
}

inline Bytes encode_value(const MadeStep& step, const MadeValue& value) {
  const format::EventHeader header{value.name, step.step, step.mode, step.mode_step < 0 ? step.step : step.mode_step,
                                   1700000000.5};
  std::vector<std::string_view> texts(value.tensor.texts().begin(), value.tensor.texts().end());
  const auto event =
      value.tensor.dtype() == DType::kString
          ? format::encode_string_event(header, value.tensor.shape(), texts)
          : format::encode_event(header, value.tensor.dtype(), value.tensor.shape(), value.tensor.bytes().size());
  EXPECT_TRUE(event.ok()) << event.error().message;
  return event->before + std::string(value.tensor.bytes()) + event->after;
}

inline Bytes encode_record(ByteView payload) {
  const auto header = format::encode_record_header(payload.size());
  const auto trailer = format::encode_trailer(format::kConstantTrailer);
  return Bytes(header.data(), header.size()) + Bytes(payload) + Bytes(trailer.data(), trailer.size());
}

class MadeTrial {
 public:
  explicit MadeTrial(store::Store& store) : store_(store) {}
  store::Store& store() { return store_; }

  void write(const std::string& path, ByteView content) {
    const auto removed = store_.remove(path);
    static_cast<void>(removed);
    auto file = store_.create(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE((*file)->append(content).ok());
    const auto published = (*file)->publish(true);
    ASSERT_TRUE(published.ok()) << published.error().message;
  }
  // Under a temporary name, as a killed writer leaves it.
  void write_temporary(const std::string& path, ByteView content) {
    const Status made = store_.create_exclusive(path + ".tmp", content);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  Bytes read(const std::string& path) {
    auto content = store_.read_all(path, std::uint64_t{1} << 31);
    EXPECT_TRUE(content.ok()) << path;
    return content.ok() ? *content : Bytes();
  }
  void change(const std::string& path, const std::function<void(Bytes&)>& edit) {
    Bytes content = read(path);
    edit(content);
    write(path, content);
  }
  void flip(const std::string& path, std::size_t position) {
    change(path, [&](Bytes& bytes) { bytes.at(position) = static_cast<char>(bytes.at(position) ^ 1); });
  }

  void collections(std::int64_t num_workers = 1, const std::string& worker = "worker_0", bool checksum = true) {
    format::CollectionsFile file{.num_workers = num_workers};
    file.collections.push_back({.name = "all", .include_regex = {".*"}});
    write(format::collections_path(worker), format::encode_collections(file, checksum));
  }
  void end() { ASSERT_TRUE(store_.create_exclusive(format::kEndMarkerPath, "").ok()); }

  struct Encoded {
    Bytes events;
    format::Index index;
  };
  static Encoded encode(const MadeStep& step) {
    Encoded encoded;
    encoded.index = {.mode = step.mode,
                     .mode_step = step.mode_step < 0 ? step.step : step.mode_step,
                     .is_partial = step.is_partial,
                     .shapes = step.shapes};
    if (!step.values.empty()) encoded.index.event_file = format::event_path(step.step, step.worker);
    for (const MadeValue& value : step.values) {
      const Bytes payload = encode_value(step, value);
      const Bytes record = encode_record(payload);
      format::IndexEntry entry{value.name, encoded.events.size(), record.size(), {}};
      if (step.has_checksums) entry.crc = masked_crc32c(payload);
      encoded.index.tensors.push_back(std::move(entry));
      encoded.events += record;
    }
    return encoded;
  }
  void step(const MadeStep& step) {
    const Encoded encoded = encode(step);
    if (!step.values.empty()) write(encoded.index.event_file, encoded.events);
    write(format::index_path(step.step, step.worker), format::encode_index(encoded.index, step.has_checksums));
  }

 private:
  store::Store& store_;
};

}  // namespace tornasole::tools
