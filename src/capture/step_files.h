#pragma once

// StepFiles: the event and index file of one step of one worker, while they are being written.
//
//   1. Values are encoded and appended to <event>.tmp; small ones are gathered, and a store may keep large ones, until
//      `flush`.
//   2. publish: the event file gets its name, then the index file is written and gets its name. The index goes last:
//      whoever can see it may trust every offset in it.
//
// Writer thread only.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capture/index_packer.h"
#include "capture/job.h"
#include "format/event.h"
#include "format/index.h"
#include "store/store.h"
#include "tornasole/result.h"

namespace tornasole::capture {

class StepFiles {
 public:
  StepFiles(store::Store* store, StepId id, std::string worker);

  const StepId& id() const noexcept { return id_; }
  Status add_value(const ValueJob& value);
  void add_shape(const ShapeJob& shape);
  // A value whose content comes in pieces; nothing else may be added before all of it came.
  Status begin_stream(const StreamJob& stream);
  Status add_piece(std::string_view piece);
  bool is_streaming() const noexcept { return stream_rest_ > 0; }

  // What was added leaves the process.
  Status flush();
  bool has_unflushed() const noexcept { return is_unflushed_; }
  // Whether the store may keep what is added until then.
  void let_keep(bool may_keep) noexcept;
  bool has_event_file() const noexcept { return event_file_ != nullptr; }
  // Made with the first value, unless it is made before.
  Status open_event_file();
  // Its values have their name already, and only the index is missing.
  bool is_half_published() const noexcept { return !event_file_ && !index_.event_file.empty(); }

  // Durable, not yet published: for grouped syncs.
  Status sync();
  struct PublishOptions {
    bool is_partial = false;
    StepFacts facts = {};
    bool sync = false;  // file, then name, then directory, for each of the two files
  };
  Status publish(const PublishOptions& options);
  // The index file, once it is published.
  const PublishedIndex& published_index() const noexcept { return published_index_; }
  // Whether somebody removed the values written so far.
  bool is_lost() const;
  // If so, writes them again, from the handle that is still open.
  Status rescue();
  // Removes what is there under temporary names.
  void abandon() noexcept;

  bool is_empty() const noexcept { return index_.tensors.empty() && index_.shapes.empty(); }
  std::uint64_t size_bytes() const noexcept { return offset_ + published_index_.text.size(); }

 private:
  Status append_record(const std::string& name, const format::EncodedEvent& event, std::string_view content);
  void add_entry(const std::string& name, std::uint64_t length, std::uint32_t masked_crc);
  // What was gathered goes to the store.
  Status append_gathered();
  Status write_index(bool sync);

  store::Store* store_;
  StepId id_;
  std::string worker_;
  std::string event_path_;
  std::unique_ptr<store::PendingFile> event_file_;
  std::string gathered_;      // encoded records that have not been appended yet
  std::uint64_t offset_ = 0;  // end of the event file, gathered records included
  bool is_unflushed_ = false;
  bool may_keep_ = false;
  format::Index index_;
  PublishedIndex published_index_;

  std::uint64_t stream_rest_ = 0;  // content bytes still to come
  std::uint32_t stream_crc_ = 0;
  std::uint64_t stream_length_ = 0;
  const std::string* stream_name_ = nullptr;
  std::string stream_after_;
};

}  // namespace tornasole::capture
