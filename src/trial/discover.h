#pragma once

// Discover: which index files are new since the last look.
//
//   1. List index/; folders that lie wholly before the token are not looked into. A directory that grows while it is
//      read may show a file and not the one published just before it. So, while a run goes on, it is listed again, and
//      nothing is taken that sorts after the last file of the first listing: of every worker, all that was published
//      before a file that is taken is taken too.
//   2. Leave out what is no index file, lies before the token, was read already, or is outside the step range.
//   3. What the caller puts back (files still being written) comes again at the next look.
//
// The token is the index path of the last complete step; files before it are never listed again.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "trial/index_loader.h"

namespace tornasole::trial {

struct StepRange {
  std::optional<std::int64_t> first = {}, end = {};
  bool contains(std::int64_t step) const noexcept { return (!first || step >= *first) && (!end || step < *end); }
};

// A name in index/ that is no index file although it ends like one.
struct ForeignFile {
  std::string path;
};

struct Discovery {
  std::vector<IndexFile> files = {};  // sorted by path
  std::vector<ForeignFile> foreign = {};
};

class Discoverer {
 public:
  explicit Discoverer(StepRange range) : range_(range) {}

  Result<Discovery> look(store::Store& store, bool is_growing);
  // A file of the last look that is to come again.
  void put_back(const IndexFile& file);
  // Moves the token; what lies before it is forgotten.
  void move_token(std::string token);
  const std::string& token() const noexcept { return token_; }

 private:
  bool is_new(const store::Entry& entry) const;
  Result<std::vector<store::Entry>> list(store::Store& store) const;
  Result<std::vector<store::Entry>> list_whole(store::Store& store) const;
  // With what was put back and lies before the token; sorted.
  Result<std::vector<store::Entry>> add_put_back(store::Store& store, std::vector<store::Entry> files) const;

  StepRange range_;
  std::string token_;
  std::set<std::string, std::less<>> read_;   // paths at or after the token
  std::set<std::string, std::less<>> again_;  // paths put back, wherever they are
};

}  // namespace tornasole::trial
