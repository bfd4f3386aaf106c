#pragma once

// The suite that every backend, and every wrapper without an active fault, passes. A backend adds itself with
//   INSTANTIATE_TEST_SUITE_P(Name, StoreConformance, testing::Values(StoreBackend{"name", make}), backend_name);

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "store/store.h"

namespace tornasole::store {

struct StoreBackend {
  std::string name;  // letters and digits
  // An empty store whose root does not exist yet; `directory` is an empty one of the test's own.
  std::function<std::unique_ptr<Store>(const std::string& directory)> make;
};

inline std::string backend_name(const testing::TestParamInfo<StoreBackend>& info) { return info.param.name; }

// A directory of its own for one test, removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What all tests of stores say often.
Status put(Store& store, std::string_view path, ByteView content, bool replace = false);
std::vector<std::string> listed(Store& store, std::string_view directory, bool recursive);
// The code of a failure; nothing if it is none.
template <typename T>
std::optional<ErrorCode> code_of(const Result<T>& result) {
  if (result.ok()) return std::nullopt;
  return result.error().code;
}

class StoreConformance : public testing::TestWithParam<StoreBackend> {
 protected:
  void SetUp() override {
    store_ = GetParam().make(directory_.path());
    ASSERT_NE(store_, nullptr);
  }
  Store& store() { return *store_; }
  bool has_directories() { return store_->capabilities().has_directories; }
  void close() { store_.reset(); }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

}  // namespace tornasole::store

// So that a failed comparison prints "io" instead of a number.
namespace tornasole {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << error_code_name(code); }
}  // namespace tornasole
