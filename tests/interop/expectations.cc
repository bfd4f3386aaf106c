#include "interop/expectations.h"

#include <cstdio>
#include <fstream>

namespace interop {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}
std::string shown(const std::string& text) { return quoted(text); }
std::string shown(std::int64_t number) { return std::to_string(number); }
std::string shown(bool truth) { return truth ? "true" : "false"; }
std::string shown(const std::pair<std::string, std::string>& pair) {
  return "[" + quoted(pair.first) + ", " + quoted(pair.second) + "]";
}
template <typename T>
std::string shown(const std::vector<T>& items) {
  std::string out = "[";
  for (const T& item : items) out += (out.size() > 1 ? ", " : "") + shown(item);
  return out + "]";
}

// The members of one object.
class Object {
 public:
  template <typename T>
  Object& add(const char* key, const T& value) {
    return add_json(key, shown(value));
  }
  Object& add_json(const char* key, const std::string& json) {
    text_ += (text_.empty() ? "{" : ", ") + quoted(key) + ": " + json;
    return *this;
  }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_;
};

// Bytes go to the blob, their place into the object.
class Writer {
 public:
  explicit Writer(const std::string& root) : blob_(root + "/expectations.bin", std::ios::binary) {}

  template <typename T, typename Describe>
  static std::string list(const std::vector<T>& items, Describe describe) {
    std::string out = "[";
    for (const T& item : items) out += (out.size() > 1 ? ",\n " : "") + describe(item);
    return out + "]";
  }

  std::string value(const Value& value) {
    Object object;
    object.add("name", value.name).add("step", value.step).add("worker", value.worker).add("dtype", value.dtype);
    object.add("shape", value.shape).add("unreadable", value.unreadable);
    if (value.dtype == "string") return object.add("texts", value.texts).text();
    place(object, value.bytes);
    return object.text();
  }
  std::string reduced(const Reduced& reduced) {
    Object object;
    object.add("name", reduced.name).add("step", reduced.step).add("worker", reduced.worker);
    object.add("dtype", reduced.dtype).add("shape", reduced.shape).add("operations", reduced.operations);
    object.add("exact", reduced.is_exact);
    place(object, reduced.bytes);
    return object.text();
  }
  std::string trial(const Trial& trial) {
    Object object;
    object.add("directory", trial.directory).add("ended", trial.is_ended).add("workers", trial.workers);
    object.add_json("steps", list(trial.steps, [](const Step& step) {
                      return "[" + shown(step.global_step) + ", " + quoted(step.mode) + ", " + shown(step.mode_step) +
                             "]";
                    }));
    object.add_json("values", list(trial.values, [this](const Value& item) { return value(item); }));
    object.add_json("reductions", list(trial.reductions, [this](const Reduced& item) { return reduced(item); }));
    object.add_json("shapes", list(trial.shapes, [](const ShapeOnly& item) {
                      Object shape;
                      shape.add("name", item.name).add("step", item.step).add("worker", item.worker);
                      return shape.add("shape", item.shape).text();
                    }));
    Object collections;
    for (const auto& [name, names] : trial.collections) collections.add(name.c_str(), names);
    object.add_json("collections", trial.collections.empty() ? "{}" : collections.text());
    return object.add("files", trial.files).add("texts", trial.texts).text();
  }

 private:
  void place(Object& object, const std::string& bytes) {
    blob_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    object.add("offset", offset_).add("length", static_cast<std::int64_t>(bytes.size()));
    offset_ += static_cast<std::int64_t>(bytes.size());
  }

  std::ofstream blob_;
  std::int64_t offset_ = 0;
};

}  // namespace

void write_expectations(const std::string& root, const std::vector<Trial>& trials) {
  Writer writer(root);
  std::ofstream out(root + "/expectations.json", std::ios::binary);
  out << Writer::list(trials, [&](const Trial& trial) { return writer.trial(trial); }) << "\n";
}

}  // namespace interop
