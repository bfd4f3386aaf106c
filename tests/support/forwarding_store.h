#pragma once

// A store, and a file, that pass every call on: what the faulty ones are made from.

#include <memory>
#include <utility>

#include "store/store.h"

namespace tornasole::store {

class ForwardingFile : public PendingFile {
 public:
  explicit ForwardingFile(std::unique_ptr<PendingFile> base) : base_(std::move(base)) {}

  using PendingFile::append;
  Status append(std::span<const ByteView> pieces) override { return base_->append(pieces); }
  void let_keep(bool may_keep) noexcept override { base_->let_keep(may_keep); }
  Status flush() override { return base_->flush(); }
  Status sync() override { return base_->sync(); }
  Status publish(bool replace) override { return base_->publish(replace); }
  Result<Bytes> read_back(std::uint64_t offset, std::uint64_t length) override {
    return base_->read_back(offset, length);
  }
  void abandon() noexcept override { base_->abandon(); }
  std::uint64_t size_bytes() const noexcept override { return base_->size_bytes(); }
  std::string version() const override { return base_->version(); }

 protected:
  PendingFile& base() noexcept { return *base_; }

 private:
  std::unique_ptr<PendingFile> base_;
};

class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::unique_ptr<Store> base) : base_(std::move(base)) {}

  std::string description() const override { return base_->description(); }
  Capabilities capabilities() const noexcept override { return base_->capabilities(); }
  Result<std::unique_ptr<PendingFile>> create(std::string_view path) override { return base_->create(path); }
  Status create_exclusive(std::string_view path, ByteView content) override {
    return base_->create_exclusive(path, content);
  }
  Status sync_directory(std::string_view directory) override { return base_->sync_directory(directory); }
  Result<FileStatus> status(std::string_view path) override { return base_->status(path); }
  Result<std::vector<Entry>> list(std::string_view directory, bool recursive) override {
    return base_->list(directory, recursive);
  }
  Result<Bytes> read(std::string_view path, std::uint64_t offset, std::uint64_t length) override {
    return base_->read(path, offset, length);
  }
  Result<Bytes> read_all(std::string_view path, std::uint64_t limit) override { return base_->read_all(path, limit); }
  Status remove(std::string_view path) override { return base_->remove(path); }
  Status rename(std::string_view from, std::string_view to) override { return base_->rename(from, to); }
  Result<double> now_s() override { return base_->now_s(); }
  bool renew_root() override { return base_->renew_root(); }

 protected:
  Store& base() noexcept { return *base_; }

 private:
  std::unique_ptr<Store> base_;
};

}  // namespace tornasole::store
