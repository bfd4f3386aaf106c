#include "tools/npy.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/utf8.h"
#include "tools/elements.h"

namespace tornasole::tools {
namespace {

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;
constexpr std::size_t kAlignment = 64;

std::string_view descriptor_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return "<f8";
    case DType::kInt32: return "<i4";
    case DType::kUint8: return "|u1";
    case DType::kInt16: return "<i2";
    case DType::kInt8: return "|i1";
    case DType::kComplex64: return "<c8";
    case DType::kInt64: return "<i8";
    case DType::kBool: return "|b1";
    case DType::kUint16: return "<u2";
    case DType::kComplex128: return "<c16";
    case DType::kFloat16: return "<f2";
    case DType::kUint32: return "<u4";
    case DType::kUint64: return "<u8";
    case DType::kFloat32:
    case DType::kBfloat16:
    case DType::kFloat8E5m2:
    case DType::kFloat8E4m3fn:
    case DType::kString: break;
  }
  return "<f4";
}

Bytes encode_header(std::string_view descriptor, const Shape& shape) {
  std::string extents;
  for (const std::int64_t extent : shape.dims()) extents += fmt::format("{},{}", extent, shape.rank() > 1 ? " " : "");
  if (shape.rank() > 1) extents.resize(extents.size() - 2);  // only a single extent keeps its comma
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor, extents);
  const bool is_long = text.size() + kAlignment > 65'535;
  const std::size_t prefix = is_long ? 12 : 10;
  const std::size_t used = prefix + text.size() + 1;
  text.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  text += '\n';
  Bytes header = "\x93NUMPY";
  header += is_long ? '\x02' : '\x01';
  header += '\0';
  std::array<char, 4> length{};
  store_u32(length.data(), static_cast<std::uint32_t>(text.size()));
  header.append(length.data(), is_long ? 4 : 2);
  return header + text;
}

// The code points of valid UTF-8.
template <typename Take>
void for_each_code_point(std::string_view text, const Take& take) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length; ++k) code = (code << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    take(code);
    i += length;
  }
}

Status encode_texts(const TensorView& tensor, NpyFile* out) {
  std::vector<std::string> texts;
  std::uint64_t widest = 1;  // NumPy has no type of width 0 that it reads back
  for (const std::string_view text : tensor.texts()) {
    std::uint64_t width = 0;
    for_each_code_point(texts.emplace_back(replace_bad_utf8(text)), [&](std::uint32_t) { ++width; });
    widest = std::max(widest, width);
  }
  const std::uint64_t total = texts.size() * widest * 4;
  if (total > kMaxTextBytes) {
    return unsupported_error("{} texts of {} characters would take {} bytes in NumPy's fixed width; at most {}",
                             texts.size(), widest, total, kMaxTextBytes);
  }
  out->converted.assign(total, '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) {
    char* to = out->converted.data() + i * widest * 4;
    for_each_code_point(texts[i], [&](std::uint32_t code) {
      store_u32(to, code);
      to += 4;
    });
  }
  out->content = out->converted;
  out->header = encode_header(fmt::format("<U{}", widest), tensor.shape());
  out->dtype_written = "str";
  return {};
}

bool is_plain(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kBfloat16 && dtype != DType::kFloat8E5m2 &&
         dtype != DType::kFloat8E4m3fn;
}

}  // namespace

Status encode_npy(const TensorView& tensor, NpyFile* out) {
  *out = {};
  if (tensor.dtype() == DType::kString) return encode_texts(tensor, out);
  const std::int64_t count = tensor.element_count();
  out->header = encode_header(descriptor_of(tensor.dtype()), tensor.shape());
  out->dtype_written = dtype_name(tensor.dtype());
  if (is_plain(tensor.dtype())) {
    out->content = {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.size_bytes())};
    return {};
  }
  visit_elements(tensor.dtype(), [&](auto load) {
    using Value = typename decltype(load)::Value;
    out->converted.resize(static_cast<std::size_t>(count) * sizeof(Value));
    for (std::int64_t i = 0; i < count; ++i) {
      const Value value = load(tensor.data(), i);
      std::memcpy(out->converted.data() + static_cast<std::size_t>(i) * sizeof(Value), &value, sizeof value);
    }
  });
  out->is_widened = tensor.dtype() != DType::kBool;
  if (out->is_widened) out->dtype_written = "float32";
  out->content = out->converted;
  return {};
}

}  // namespace tornasole::tools
