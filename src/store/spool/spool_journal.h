#pragma once

// SpoolJournal: what a process could not send to a store that is away, on a local disk, in the order it was to be sent.
//
//   <spool_dir>/<name of the location>/<process>/
//     owner.json          the location, and the process that writes here
//     000000000007.data   the content of action 7, if it has one
//     000000000007.json   action 7: what is to be done with it. Written last: data without it is nobody's
//
// Used by: SpoolStore, which writes it, and whoever sends what a dead process has left.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "store/store.h"

namespace tornasole::store {

struct SpoolOwner {
  std::string location = {};
  ProcessIdentity process = {};
  double start_time = 0;  // of the spool, seconds since 1970
};
inline constexpr std::string_view kSpoolOwnerPath = "owner.json";
Bytes encode_spool_owner(const SpoolOwner& owner);
Result<SpoolOwner> decode_spool_owner(ByteView text);

struct SpoolAction {
  enum class Kind { kPublish, kRemove };
  std::int64_t number = 0;
  Kind kind = Kind::kPublish;
  std::string path = {};  // in the store that is away
  bool replace = false;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;  // of the content, CRC-32C
};
std::string spool_data_path(std::int64_t number);
std::string spool_action_path(std::int64_t number);
Bytes encode_spool_action(const SpoolAction& action);
Result<SpoolAction> decode_spool_action(ByteView text, std::int64_t number);

// The actions in a spool, in order; ones that are damaged are named in `problems`.
Result<std::vector<SpoolAction>> read_spool_actions(Store& spool, std::vector<std::string>* problems);
// Does it. kCorrupt if the spool no longer has what it was given; every other error is the target's.
Status perform_spool_action(Store& spool, const SpoolAction& action, Store& target);
// The action first, so that it is never found without its data.
Status forget_spool_action(Store& spool, const SpoolAction& action);

// A readable name for the spools of one location: letters, digits, . _ - and a hash.
std::string spool_name(std::string_view location);

struct FoundSpool {
  std::string directory = {};
  SpoolOwner owner = {};
};
// The spools at or below a directory, oldest first.
Result<std::vector<FoundSpool>> find_spools(const std::string& directory);
// Its owner file and directories, if nothing waits in it.
void remove_empty_spool(Store& spool, const FoundSpool& found);

struct SpoolDelivery {
  std::int64_t files = 0;  // published or removed at the target
  std::uint64_t bytes = 0;
  std::vector<std::string> problems = {};  // what was refused or is damaged; it stays in the spool
};
// Everything that a dead process left, into the target. An error ends it: what was not sent stays where it is. Nothing
// is done, without an error, while another process sends the same spool.
Status deliver_spool(const FoundSpool& found, Store& target, SpoolDelivery* delivery);

}  // namespace tornasole::store
