#include "capture/step_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "format/paths.h"
#include "format/record.h"
#include "store/store_path.h"

namespace tornasole::capture {
namespace {

// Records up to this size are copied together, larger ones go to the store from where they are.
constexpr std::size_t kGatherBytes = std::size_t{64} << 10;
constexpr std::size_t kFlushBytes = std::size_t{512} << 10;
// Of a large record, so much is summed up and written before the next: what was read for the one is in the caches for
// the other. With what stands before it, it is one write of a local store.
constexpr std::size_t kPieceBytes = std::size_t{252} << 10;

std::string_view view(const std::array<char, 4>& bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const std::array<char, format::kRecordHeaderBytes>& bytes) {
  return {bytes.data(), bytes.size()};
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

StepFiles::StepFiles(store::Store* store, StepId id, std::string worker)
    : store_(store), id_(id), worker_(std::move(worker)), event_path_(format::event_path(id.global_step, worker_)) {
  published_index_.step = id.global_step;
  published_index_.path = format::index_path(id.global_step, worker_);
  index_.mode = id.mode;
  index_.mode_step = id.mode_step;
}

Status StepFiles::open_event_file() {
  if (event_file_) return {};
  TORNASOLE_TRY(event_file_, store_->create(event_path_));
  event_file_->let_keep(may_keep_);
  return {};
}

void StepFiles::add_entry(const std::string& name, std::uint64_t length, std::uint32_t masked_crc) {
  index_.tensors.push_back({name, offset_, length, masked_crc});
  offset_ += length;
}

Status StepFiles::append_record(const std::string& name, const format::EncodedEvent& event, std::string_view content) {
  TORNASOLE_CHECK(open_event_file());
  is_unflushed_ = true;
  const auto header = format::encode_record_header(event.payload_bytes());
  const auto trailer = format::encode_trailer(format::kConstantTrailer);
  const std::uint64_t length = event.payload_bytes() + format::kRecordFrameBytes;
  std::uint32_t crc = crc32c(event.before);
  if (length <= kGatherBytes) {
    for (const ByteView piece : {view(header), ByteView(event.before), content, ByteView(event.after), view(trailer)}) {
      gathered_ += piece;
    }
    crc = crc32c(content, crc);
  } else {
    TORNASOLE_CHECK(append_gathered());
    std::vector<ByteView> pieces = {view(header), event.before};
    for (ByteView rest = content; !rest.empty(); rest.remove_prefix(pieces.back().size())) {
      if (rest.size() < content.size()) {
        TORNASOLE_CHECK(event_file_->append(pieces));
        pieces.clear();
      }
      pieces.push_back(rest.substr(0, kPieceBytes));
      crc = crc32c(pieces.back(), crc);
    }
    pieces.insert(pieces.end(), {event.after, view(trailer)});
    TORNASOLE_CHECK(event_file_->append(pieces));
  }
  add_entry(name, length, mask_crc(crc32c(event.after, crc)));
  return gathered_.size() >= kFlushBytes ? append_gathered() : Status();
}

Status StepFiles::add_value(const ValueJob& value) {
  const format::EventHeader header = {*value.name, id_.global_step, id_.mode, id_.mode_step, value.wall_time};
  if (value.dtype == DType::kString) {
    const std::vector<std::string_view> texts(value.texts.begin(), value.texts.end());
    TORNASOLE_TRY(const format::EncodedEvent event, format::encode_string_event(header, value.shape, texts));
    return append_record(*value.name, event, {});
  }
  TORNASOLE_TRY(const format::EncodedEvent event,
                format::encode_event(header, value.dtype, value.shape, value.content.size()));
  return append_record(*value.name, event, value.content);
}

void StepFiles::add_shape(const ShapeJob& shape) {
  const auto dims = shape.shape.dims();
  index_.shapes.push_back({*shape.name, *shape.name, {dims.begin(), dims.end()}});
}

Status StepFiles::begin_stream(const StreamJob& stream) {
  const format::EventHeader header = {*stream.name, id_.global_step, id_.mode, id_.mode_step, stream.wall_time};
  TORNASOLE_TRY(format::EncodedEvent event,
                format::encode_event(header, stream.dtype, stream.shape, stream.content_bytes));
  TORNASOLE_CHECK(open_event_file());
  TORNASOLE_CHECK(append_gathered());
  is_unflushed_ = true;
  const auto frame = format::encode_record_header(event.payload_bytes());
  const std::array<ByteView, 2> pieces = {view(frame), event.before};
  TORNASOLE_CHECK(event_file_->append(pieces));
  stream_rest_ = stream.content_bytes;
  stream_crc_ = crc32c(event.before);
  stream_length_ = event.payload_bytes() + format::kRecordFrameBytes;
  stream_name_ = stream.name;
  stream_after_ = std::move(event.after);
  return {};
}

Status StepFiles::add_piece(std::string_view piece) {
  TORNASOLE_CHECK(event_file_->append(piece));
  stream_crc_ = crc32c(piece, stream_crc_);
  stream_rest_ -= std::min<std::uint64_t>(stream_rest_, piece.size());
  if (stream_rest_ > 0) return {};
  const auto trailer = format::encode_trailer(format::kConstantTrailer);
  const std::array<ByteView, 2> pieces = {stream_after_, view(trailer)};
  TORNASOLE_CHECK(event_file_->append(pieces));
  add_entry(*stream_name_, stream_length_, mask_crc(crc32c(stream_after_, stream_crc_)));
  return {};
}

Status StepFiles::append_gathered() {
  if (gathered_.empty()) return {};
  TORNASOLE_CHECK(event_file_->append(gathered_));
  gathered_.clear();
  return {};
}

Status StepFiles::flush() {
  if (!is_unflushed_) return {};
  TORNASOLE_CHECK(append_gathered());
  TORNASOLE_CHECK(event_file_->flush());
  is_unflushed_ = false;
  return {};
}

void StepFiles::let_keep(bool may_keep) noexcept {
  may_keep_ = may_keep;
  if (event_file_) event_file_->let_keep(may_keep);
}

Status StepFiles::sync() {
  TORNASOLE_CHECK(flush());
  return event_file_ ? event_file_->sync() : Status();
}

Status StepFiles::publish(const PublishOptions& options) {
  index_.is_partial = options.is_partial;
  index_.optimizer_step = options.facts.optimizer_step;
  index_.training = options.facts.training;
  index_.grad_enabled = options.facts.grad_enabled;
  index_.backward_in_eval = options.facts.backward_in_eval;
  index_.grad_scale = options.facts.grad_scale;
  TORNASOLE_CHECK(flush());
  if (event_file_) {
    index_.event_file = event_path_;
    if (options.sync) TORNASOLE_CHECK(event_file_->sync());
    // An event file without an index file belongs to no step, so one that is there already may go.
    TORNASOLE_CHECK(event_file_->publish(/*replace=*/true));
    event_file_.reset();
    if (options.sync) TORNASOLE_CHECK(store_->sync_directory(parent_of(event_path_)));
  }
  return write_index(options.sync);
}

Status StepFiles::write_index(bool sync) {
  Bytes text = format::encode_index(index_);
  TORNASOLE_TRY(const auto file, store_->create(published_index_.path));
  TORNASOLE_CHECK(file->append(text));
  if (sync) TORNASOLE_CHECK(file->sync());
  TORNASOLE_CHECK(file->publish(/*replace=*/false));
  published_index_.text = std::move(text);
  published_index_.version = file->version();
  if (sync) TORNASOLE_CHECK(store_->sync_directory(parent_of(published_index_.path)));
  return {};
}

bool StepFiles::is_lost() const {
  if (!event_file_ || !store_->capabilities().can_rename) return false;
  const auto status = store_->status(fmt::format("{}{}", event_path_, store::kTemporarySuffix));
  return !status.ok() && status.error().code == ErrorCode::kNotFound;
}

Status StepFiles::rescue() {
  if (!is_lost()) return {};
  TORNASOLE_TRY(auto copy, store_->create(event_path_));
  for (std::uint64_t offset = 0; offset < event_file_->size_bytes();) {
    TORNASOLE_TRY(const Bytes piece, event_file_->read_back(offset, kFlushBytes));
    if (piece.empty()) return io_error("{}: its values end after {} bytes", event_path_, offset);
    TORNASOLE_CHECK(copy->append(piece));
    offset += piece.size();
  }
  event_file_ = std::move(copy);
  return {};
}

void StepFiles::abandon() noexcept {
  if (event_file_) {
    event_file_->abandon();
    event_file_.reset();
    return;
  }
  // The event file was published, its index was not: nobody can see it, and nobody needs it.
  if (index_.event_file.empty() || !published_index_.text.empty()) return;
  try {
    [[maybe_unused]] const Status removed = store_->remove(event_path_);
  } catch (...) {
    static_cast<void>(error_from_current_exception());  // it stays, without an index, and is nobody's
  }
}

}  // namespace tornasole::capture
