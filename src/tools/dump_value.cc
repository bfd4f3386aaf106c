#include "tools/dump_value.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/sha256.h"
#include "base/utf8.h"
#include "tools/elements.h"
#include "tornasole/stats.h"

namespace tornasole::tools {
namespace {

// The class an error is raised as, which is how the reference names it.
std::string_view exception_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kType: return "TypeError";
    case ErrorKind::kValue: return "ValueError";
    case ErrorKind::kRuntime: return "RuntimeError";
    case ErrorKind::kNotImplemented: return "NotImplementedError";
    case ErrorKind::kBadCollection: return "InvalidCollectionConfiguration";
    case ErrorKind::kFileNotFound: return "FileNotFoundError";
    case ErrorKind::kMissingCollectionFiles: return "MissingCollectionFiles";
    case ErrorKind::kIndexReader: return "IndexReaderException";
    case ErrorKind::kTensorUnavailable: return "TensorUnavailable";
    case ErrorKind::kTensorUnavailableForStep: return "TensorUnavailableForStep";
    case ErrorKind::kShapeUnavailableForStep: return "ShapeUnavailableForStep";
    case ErrorKind::kStepUnavailable: return "StepUnavailable";
    case ErrorKind::kStepNotYetAvailable: return "StepNotYetAvailable";
    case ErrorKind::kNoMoreData: return "NoMoreData";
    case ErrorKind::kInvalidWorker: return "InvalidWorker";
    case ErrorKind::kInsufficientInformation: return "InsufficientInformationForRuleInvocation";
    case ErrorKind::kBase: break;
  }
  return "TornasoleError";
}

std::string hash_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::kString) return sha256_hex(tensor.bytes());
  Sha256 hash;
  for (const std::string& text : tensor.texts()) {
    hash.update(text);
    hash.update(ByteView("\0", 1));
  }
  return hash.finish();
}

template <typename Value>
void write_element(JsonWriter& json, Value value) {
  if constexpr (kIsComplex<Value>) {
    json.begin_array();
    write_dump_number(json, static_cast<double>(value.real()));
    write_dump_number(json, static_cast<double>(value.imag()));
    json.end_array();
  } else if constexpr (std::is_floating_point_v<Value>) {
    write_dump_number(json, static_cast<double>(value));
  } else if constexpr (std::is_same_v<Value, bool>) {
    json.value(value);
  } else {
    json.raw(fmt::format("{}", value));
  }
}

void write_data(JsonWriter& json, const Tensor& tensor) {
  json.key("data").begin_array();
  for (const std::string& text : tensor.texts()) json.value(text);
  const auto* data = reinterpret_cast<const std::byte*>(tensor.bytes().data());
  visit_elements(tensor.dtype(), [&](auto load) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) write_element(json, load(data, i));
  });
  json.end_array();
}

void write_summary(JsonWriter& json, const Tensor& tensor) {
  std::vector<std::string_view> texts;
  const auto found = stats(view_of(tensor, &texts), {Stat::kMin, Stat::kMax, Stat::kMean});
  if (!found.ok()) return;  // strings
  for (const Stat stat : {Stat::kMin, Stat::kMax, Stat::kMean}) {
    if (const auto value = (*found)[stat]) {
      json.key(stat_name(stat));
      write_dump_number(json, *value);
    }
  }
}

}  // namespace

void write_dump_number(JsonWriter& json, double number) {
  if (std::isfinite(number)) {
    json.value(number);
  } else {
    json.value(number_text(number));
  }
}

void write_dump_value(JsonWriter& json, const Tensor& tensor, std::int64_t max_elements) {
  json.begin_object().key("status").value("ok").key("dtype").value(dtype_name(tensor.dtype())).key("shape");
  json.begin_array();
  for (const std::int64_t extent : tensor.shape().dims()) json.value(extent);
  json.end_array().key("size").value(tensor.element_count()).key("sha256").value(hash_of(tensor));
  if (tensor.element_count() <= max_elements) {
    write_data(json, tensor);
  } else {
    write_summary(json, tensor);
  }
  json.end_object();
}

void write_dump_error(JsonWriter& json, const Error& error) {
  json.begin_object().key("status").value("error").key("exception").value(exception_name(error.kind));
  json.key("message").value(error.message).end_object();
}

}  // namespace tornasole::tools
