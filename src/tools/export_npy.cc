// NumPy files, as a directory or in one archive. Both have
//
//   tensors/<tensor>/<step %012d>_<worker>.npy
//   tensors/<tensor>/reductions/<reduction>/<step %012d>_<worker>.npy
//   manifest.json
//
// where <tensor> and <worker> are made safe by safe_file_name.

#include <array>
#include <set>
#include <utility>

#include "base/errors.h"
#include "base/json.h"
#include "tools/export_writer.h"
#include "tools/npy.h"
#include "tools/zip.h"

namespace tornasole::tools {
namespace {

std::string file_of(const ExportedValue& value) {
  std::string path = "tensors/" + safe_file_name(value.tensor) + "/";
  if (value.reduction) path += "reductions/" + reduction_name(*value.reduction) + "/";
  return path + fmt::format("{:012}_{}.npy", value.global_step.number, safe_file_name(value.worker));
}

// One object of the manifest's list.
std::string describe(const ExportedValue& value, std::string_view file, const NpyFile& written) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("file").value(file).key("tensor").value(value.tensor).key("reduction");
  if (value.reduction) {
    json.value(reduction_name(*value.reduction));
  } else {
    json.null();
  }
  json.key("step").value(value.global_step.number).key("mode").value(mode_name(value.step.mode));
  json.key("mode_step").value(value.step.number).key("worker").value(value.worker);
  json.key("dtype").value(dtype_name(value.value.dtype())).key("shape").begin_array();
  for (const std::int64_t extent : value.value.shape().dims()) json.value(extent);
  json.end_array().key("written_as").value(written.dtype_written).end_object();
  return text;
}

constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kManifestHead = "{\"version\": 1, \"values\": [\n";
constexpr std::string_view kManifestTail = "\n]}\n";

// Everything is written below <name>.tmp, which gets its name at the end.
class NpyDirectoryWriter final : public ExportWriter {
 public:
  NpyDirectoryWriter(ExportTarget target, ExportReport* report)
      : target_(std::move(target)), report_(*report), root_(target_.name + ".tmp") {}
  ~NpyDirectoryWriter() override {
    if (!is_finished_) remove_all();
  }

  Status open() {
    if (target_.directory->status(root_).ok()) {
      is_finished_ = true;  // it is not ours to remove
      return invalid_error("{}/{} exists already; remove it first", target_.directory->description(), root_);
    }
    TORNASOLE_TRY(manifest_, target_.directory->create(path_of(kManifestName)));
    return manifest_->append(kManifestHead);
  }

  Status add(const ExportedValue& value) override {
    NpyFile npy;
    TORNASOLE_CHECK(encode_npy(value.value, &npy));
    const std::string file = file_of(value);
    TORNASOLE_TRY(const auto pending, target_.directory->create(path_of(file)));
    const std::array<ByteView, 2> pieces = {npy.header, npy.content};
    TORNASOLE_CHECK(pending->append(pieces));
    TORNASOLE_CHECK(pending->publish(/*replace=*/true));
    TORNASOLE_CHECK(manifest_->append((report_.files == 0 ? "" : ",\n") + describe(value, file, npy)));
    ++report_.files;
    report_.bytes += npy.header.size() + npy.content.size();
    if (npy.is_widened) ++report_.widened;
    return {};
  }

  Status finish() override {
    TORNASOLE_CHECK(manifest_->append(kManifestTail));
    report_.bytes += manifest_->size_bytes();
    TORNASOLE_CHECK(manifest_->publish(/*replace=*/false));
    ++report_.files;
    // An empty directory may stand there; anything else is found by the rename.
    const Status removed = target_.directory->remove(target_.name);
    static_cast<void>(removed);
    TORNASOLE_CHECK(target_.directory->rename(root_, target_.name));
    is_finished_ = true;
    return {};
  }

 private:
  std::string path_of(std::string_view file) const { return fmt::format("{}/{}", root_, file); }

  void remove_all() noexcept {
    try {
      if (manifest_) manifest_->abandon();
      const auto entries = target_.directory->list(root_, /*recursive=*/true);
      if (!entries.ok()) return;
      std::set<std::string, std::greater<>> directories = {root_, root_ + "/tensors"};  // deepest first
      for (const store::Entry& entry : *entries) {
        static_cast<void>(target_.directory->remove(entry.path).ok());
        for (std::string parent = entry.path; parent.size() > root_.size();) {
          parent.resize(parent.rfind('/'));
          directories.insert(parent);
        }
      }
      for (const std::string& directory : directories) static_cast<void>(target_.directory->remove(directory).ok());
    } catch (...) {
      static_cast<void>(error_from_current_exception());  // what is left has a temporary name
    }
  }

  const ExportTarget target_;
  ExportReport& report_;
  const std::string root_;
  std::unique_ptr<store::PendingFile> manifest_;
  bool is_finished_ = false;
};

class NpzWriter final : public ExportWriter {
 public:
  NpzWriter(std::unique_ptr<store::PendingFile> file, const ExportOptions& options, ExportReport* report)
      : file_(std::move(file)), zip_(file_.get(), options.compress), options_(options), report_(*report) {}

  Status add(const ExportedValue& value) override {
    NpyFile npy;
    TORNASOLE_CHECK(encode_npy(value.value, &npy));
    const std::string name = file_of(value);
    const std::array<ByteView, 2> pieces = {npy.header, npy.content};
    TORNASOLE_CHECK(zip_.add(name, pieces));
    manifest_ += (manifest_.empty() ? "" : ",\n") + describe(value, name, npy);
    if (npy.is_widened) ++report_.widened;
    return {};
  }

  Status finish() override {
    const std::array<ByteView, 3> pieces = {kManifestHead, manifest_, kManifestTail};
    TORNASOLE_CHECK(zip_.add(kManifestName, pieces));
    TORNASOLE_CHECK(zip_.finish());
    report_.files = 1;
    report_.bytes = file_->size_bytes();
    return file_->publish(options_.overwrite);
  }

 private:
  const std::unique_ptr<store::PendingFile> file_;
  ZipWriter zip_;
  const ExportOptions& options_;
  ExportReport& report_;
  std::string manifest_;
};

}  // namespace

Result<std::unique_ptr<ExportWriter>> make_npy_writer(const ExportTarget& target, ExportReport* report) {
  auto writer = std::make_unique<NpyDirectoryWriter>(target, report);
  TORNASOLE_CHECK(writer->open());
  return std::unique_ptr<ExportWriter>(std::move(writer));
}

Result<std::unique_ptr<ExportWriter>> make_npz_writer(const ExportTarget& target, const ExportOptions& options,
                                                      ExportReport* report) {
  TORNASOLE_TRY(auto file, target.directory->create(target.name));
  return std::unique_ptr<ExportWriter>(std::make_unique<NpzWriter>(std::move(file), options, report));
}

}  // namespace tornasole::tools
