#include "store/spool/spool_journal.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "store/local/local_store.h"

namespace tornasole::store {
namespace {

constexpr std::uint64_t kMaxSmallBytes = 64 << 10U;
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20U;
constexpr std::string_view kActionSuffix = ".json";
constexpr std::string_view kSenderPath = "sender";
constexpr int kSearchDepth = 3;

Result<std::int64_t> read_number(const Json& json, std::string_view key, std::int64_t lowest) {
  const Json* found = json.find(key);
  const std::int64_t* number = found == nullptr ? nullptr : found->as_int();
  if (number == nullptr || *number < lowest) return corrupt_error("no {} of {} or more", key, lowest);
  return *number;
}

Result<std::string> read_text(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  const std::string* text = found == nullptr ? nullptr : found->as_string();
  if (text == nullptr) return corrupt_error("no text {}", key);
  return *text;
}

// "000000000007.json" -> 7.
std::optional<std::int64_t> action_number(std::string_view path) {
  if (!path.ends_with(kActionSuffix)) return std::nullopt;
  path.remove_suffix(kActionSuffix.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (error != std::errc() || end != path.data() + path.size() || number < 0) return std::nullopt;
  return number;
}

Status find_below(const std::string& directory, int depth, std::vector<FoundSpool>* found) {
  TORNASOLE_TRY(const auto store, open_local_store(directory, {.read_only = true}));
  const auto text = store->read_all(kSpoolOwnerPath, kMaxSmallBytes);
  if (text.ok()) {
    auto owner = decode_spool_owner(*text);
    if (owner.ok()) found->push_back({directory, std::move(*owner)});
    return {};
  }
  if (text.error().code != ErrorCode::kNotFound) return text.error();
  if (depth == 0) return {};
  TORNASOLE_TRY(const auto entries, store->list("", /*recursive=*/false));
  for (const Entry& entry : entries) {
    if (entry.status.is_directory) TORNASOLE_CHECK(find_below(directory + "/" + entry.path, depth - 1, found));
  }
  return {};
}

// Of several processes that find the same spool one sends it. Whoever died sending it is followed.
Result<bool> take_spool(Store& spool) {
  const SpoolOwner self{.location = {}, .process = this_process()};
  for (int tries = 0; tries < 2; ++tries) {
    Status taken = spool.create_exclusive(kSenderPath, encode_spool_owner(self));
    if (taken.ok()) return true;
    if (taken.error().code != ErrorCode::kInvalid) return taken.error();
    const auto text = spool.read_all(kSenderPath, kMaxSmallBytes);
    const auto sender = text.ok() ? decode_spool_owner(*text) : Result<SpoolOwner>(text.error());
    if (sender.ok() && is_process_alive(sender->process) != false) return false;
    const Status removed = spool.remove(kSenderPath);
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed.error();
  }
  return false;
}

Status send_actions(Store& spool, Store& target, SpoolDelivery* delivery) {
  TORNASOLE_TRY(const auto actions, read_spool_actions(spool, &delivery->problems));
  for (const SpoolAction& action : actions) {
    Status done = perform_spool_action(spool, action, target);
    if (!done.ok()) {
      if (done.error().code != ErrorCode::kInvalid && done.error().code != ErrorCode::kCorrupt) return done;
      delivery->problems.push_back(done.error().message);
      continue;
    }
    TORNASOLE_CHECK(forget_spool_action(spool, action));
    ++delivery->files;
    delivery->bytes += action.size_bytes;
  }
  return {};
}

}  // namespace

std::string spool_data_path(std::int64_t number) { return fmt::format("{:012}.data", number); }
std::string spool_action_path(std::int64_t number) { return fmt::format("{:012}{}", number, kActionSuffix); }

Bytes encode_spool_owner(const SpoolOwner& owner) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("version").value(1).key("location").value(owner.location);
  json.key("host").value(owner.process.host).key("pid").value(owner.process.pid);
  json.key("start").value(owner.process.start).key("start_time").value(owner.start_time).end_object();
  return out;
}

Result<SpoolOwner> decode_spool_owner(ByteView text) {
  TORNASOLE_TRY(const Json json, parse_json(text, {.max_bytes = kMaxSmallBytes, .max_depth = 4}));
  SpoolOwner owner;
  TORNASOLE_TRY(owner.location, read_text(json, "location"));
  TORNASOLE_TRY(owner.process.host, read_text(json, "host"));
  TORNASOLE_TRY(owner.process.pid, read_number(json, "pid", 1));
  TORNASOLE_TRY(owner.process.start, read_number(json, "start", 0));
  const Json* time = json.find("start_time");
  if (time != nullptr && time->as_double() != nullptr) owner.start_time = *time->as_double();
  return owner;
}

Bytes encode_spool_action(const SpoolAction& action) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("action").value(action.kind == SpoolAction::Kind::kPublish ? "publish" : "remove");
  json.key("path").value(action.path).key("replace").value(action.replace);
  json.key("bytes").value(static_cast<std::int64_t>(action.size_bytes)).key("crc32c").value(action.crc).end_object();
  return out;
}

Result<SpoolAction> decode_spool_action(ByteView text, std::int64_t number) {
  TORNASOLE_TRY(const Json json, parse_json(text, {.max_bytes = kMaxSmallBytes, .max_depth = 4}));
  SpoolAction action{.number = number};
  TORNASOLE_TRY(const std::string kind, read_text(json, "action"));
  if (kind != "publish" && kind != "remove") return corrupt_error("action is \"{}\"", printable(kind.substr(0, 40)));
  action.kind = kind == "publish" ? SpoolAction::Kind::kPublish : SpoolAction::Kind::kRemove;
  TORNASOLE_TRY(action.path, read_text(json, "path"));
  TORNASOLE_CHECK(check_path(action.path));
  const Json* replace = json.find("replace");
  if (replace == nullptr || replace->as_bool() == nullptr) return corrupt_error("no true or false replace");
  action.replace = *replace->as_bool();
  TORNASOLE_TRY(const std::int64_t bytes, read_number(json, "bytes", 0));
  TORNASOLE_TRY(const std::int64_t crc, read_number(json, "crc32c", 0));
  action.size_bytes = static_cast<std::uint64_t>(bytes);
  action.crc = static_cast<std::uint32_t>(crc);
  return action;
}

Result<std::vector<SpoolAction>> read_spool_actions(Store& spool, std::vector<std::string>* problems) {
  TORNASOLE_TRY(const auto entries, spool.list("", /*recursive=*/false));
  std::vector<SpoolAction> actions;
  for (const Entry& entry : entries) {
    const auto number = action_number(entry.path);
    if (!number) continue;
    const auto text = spool.read_all(entry.path, kMaxSmallBytes);
    if (!text.ok()) return text.error();
    auto action = decode_spool_action(*text, *number);
    if (action.ok()) {
      actions.push_back(std::move(*action));
    } else {
      problems->push_back(fmt::format("{}: {}", entry.path, action.error().message));
    }
  }
  std::ranges::sort(actions, {}, &SpoolAction::number);
  return actions;
}

Status perform_spool_action(Store& spool, const SpoolAction& action, Store& target) {
  if (action.kind == SpoolAction::Kind::kRemove) {
    Status removed = target.remove(action.path);
    return removed.ok() || removed.error().code == ErrorCode::kNotFound ? Status() : removed;
  }
  TORNASOLE_TRY(const auto file, target.create(action.path));
  std::uint32_t crc = 0;
  for (std::uint64_t offset = 0; offset < action.size_bytes;) {
    const auto piece = spool.read(spool_data_path(action.number), offset,
                                  std::min<std::uint64_t>(kPieceBytes, action.size_bytes - offset));
    if (!piece.ok() || piece->empty()) {
      return corrupt_error(
          "{}: the spool lost it: {}", action.path,
          piece.ok() ? fmt::format("it ends after {} of {} bytes", offset, action.size_bytes) : piece.error().message);
    }
    crc = crc32c(*piece, crc);
    offset += piece->size();
    TORNASOLE_CHECK(file->append(*piece));
  }
  if (crc != action.crc) return corrupt_error("{}: its bytes in the spool are not what was put there", action.path);
  return file->publish(action.replace);
}

Status forget_spool_action(Store& spool, const SpoolAction& action) {
  Status removed = spool.remove(spool_action_path(action.number));
  if (action.kind == SpoolAction::Kind::kPublish) {
    const Status data = spool.remove(spool_data_path(action.number));
    if (removed.ok()) removed = data;
  }
  return removed;
}

std::string spool_name(std::string_view location) {
  constexpr std::size_t kReadableBytes = 80;
  constexpr std::size_t kHashDigits = 12;
  std::string name;
  const std::size_t scheme = location.find("://");
  const std::string_view readable = scheme == std::string_view::npos ? location : location.substr(scheme + 3);
  for (const char c : readable.substr(0, kReadableBytes)) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    name += is_plain ? c : '_';
  }
  return name + "-" + sha256_hex(location).substr(0, kHashDigits);
}

Result<std::vector<FoundSpool>> find_spools(const std::string& directory) {
  std::vector<FoundSpool> found;
  TORNASOLE_CHECK(find_below(directory, kSearchDepth, &found));
  std::ranges::sort(found, {}, [](const FoundSpool& spool) {
    return std::pair<double, std::string_view>(spool.owner.start_time, spool.directory);
  });
  return found;
}

void remove_empty_spool(Store& spool, const FoundSpool& found) {
  const auto entries = spool.list("", /*recursive=*/false);
  if (!entries.ok()) return;
  for (const Entry& entry : *entries) {
    if (entry.path.ends_with(kActionSuffix) && entry.path != kSpoolOwnerPath) return;  // somebody still wants it sent
  }
  // What is left besides the owner's name is data that no action speaks of.
  for (const Entry& entry : *entries) {
    const Status removed = spool.remove(entry.path);
    static_cast<void>(removed);  // the directory then stays, and says whose it is
  }
  std::error_code ignored;
  const std::filesystem::path directory(found.directory);
  std::filesystem::remove(directory, ignored);
  // That of the location goes with its last spool; of directories only empty ones can be removed so.
  const std::filesystem::path above = directory.parent_path();
  if (above.filename() == spool_name(found.owner.location)) std::filesystem::remove(above, ignored);
}

Status deliver_spool(const FoundSpool& found, Store& target, SpoolDelivery* delivery) {
  TORNASOLE_TRY(const auto spool, open_local_store(found.directory));
  TORNASOLE_TRY(const bool is_ours, take_spool(*spool));
  if (!is_ours) return {};
  Status sent = send_actions(*spool, target, delivery);
  const Status released = spool->remove(kSenderPath);
  if (!sent.ok()) return sent;
  if (!released.ok() && released.error().code != ErrorCode::kNotFound) return released;
  remove_empty_spool(*spool, found);
  return {};
}

}  // namespace tornasole::store
