#include "cli/element_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/utf8.h"
#include "cli/decimal_digits.h"

namespace tornasole::cli {
namespace {

constexpr double kTooLarge = 1e8;
constexpr double kTooSmall = 1e-4;
constexpr double kTooWide = 1000;  // ratio of the largest to the smallest magnitude

bool needs_scientific(std::span<const double> values, DType dtype) {
  double largest = 0;
  double smallest = INFINITY;
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    largest = std::max(largest, std::fabs(value));
    smallest = std::min(smallest, std::fabs(value));
  }
  if (largest == 0) return false;
  return largest >= kTooLarge || smallest < kTooSmall || rounded_to(largest / smallest, dtype) > kTooWide;
}

std::string padded_left(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

template <typename Part>
std::vector<double> parts_of(const ElementReader& reader, std::span<const std::int64_t> shown, Part part) {
  std::vector<double> values;
  if (reader.kind() != ElementKind::kReal && reader.kind() != ElementKind::kComplex) return values;
  values.reserve(shown.size());
  for (const std::int64_t position : shown) values.push_back((reader.*part)(position));
  return values;
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\\' || c == quote) out += '\\';
    out += c;
  }
  // Backslashes were doubled first, so the escapes of what must not reach a terminal stay distinct.
  return printable(out + quote);
}

}  // namespace

RealFormat::RealFormat(std::span<const double> values, DType dtype, bool always_signed)
    : dtype_(dtype), is_signed_(always_signed) {
  const bool has_finite = std::any_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  if (has_finite) {
    is_scientific_ = needs_scientific(values, dtype);
    if (is_scientific_) {
      fit_scientific(values);
    } else {
      fit_positional(values);
    }
  }
  fit_non_finite(values);
}

void RealFormat::fit_scientific(std::span<const double> values) {
  std::size_t places = 0;
  std::size_t exponent_size = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const DecimalText text = scientific(value, dtype_, kPrintedPlaces);
    left_ = std::max(left_, (sign_for(value) + text.whole).size());
    places = std::max(places, text.fraction.size());
    exponent_size = std::max(exponent_size, exponent_text(text.exponent).size() - 2);
  }
  places_ = static_cast<int>(places);
  exponent_digits_ = static_cast<int>(exponent_size);
  right_ = places + 2 + exponent_size;
}

void RealFormat::fit_positional(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const DecimalText text = positional(value, dtype_, kPrintedPlaces);
    left_ = std::max(left_, (sign_for(value) + text.whole).size());
    right_ = std::max(right_, text.fraction.size());
  }
}

// "nan" and "-inf" take the room of a number and its point.
void RealFormat::fit_non_finite(std::span<const double> values) {
  std::size_t widest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) continue;
    const bool has_negative =
        is_signed_ || std::any_of(values.begin(), values.end(), [](double v) { return std::isinf(v) && v < 0; });
    widest = has_negative ? 4 : 3;
    break;
  }
  if (widest > left_ + right_ + 1) left_ = widest - right_ - 1;
}

std::string RealFormat::text(double value) const {
  if (std::isnan(value)) return padded_left(is_signed_ ? "+nan" : "nan", left_ + right_ + 1);
  if (std::isinf(value)) {
    return padded_left(value < 0 ? "-inf" : is_signed_ ? "+inf" : "inf", left_ + right_ + 1);
  }
  const std::string sign = sign_for(value);
  if (is_scientific_) {
    const DecimalText text = scientific_exactly(value, places_);
    return padded_left(sign + text.whole, left_) + "." + text.fraction + exponent_text(text.exponent, exponent_digits_);
  }
  DecimalText text = positional_exactly(value, dtype_, kPrintedPlaces);
  text.fraction.resize(std::max(right_, text.fraction.size()), ' ');
  return padded_left(sign + text.whole, left_) + "." + text.fraction;
}

ElementFormat::ElementFormat(const ElementReader& reader, std::span<const std::int64_t> shown)
    : reader_(reader),
      real_(parts_of(reader, shown, &ElementReader::real), reader.dtype(), false),
      imaginary_(parts_of(reader, shown, &ElementReader::imaginary), reader.dtype(), true) {
  if (reader.kind() != ElementKind::kInteger) return;
  for (const std::int64_t position : shown) {
    integer_width_ = std::max(integer_width_, reader.integer_text(position).size());
  }
}

std::string ElementFormat::word(std::int64_t position) const {
  switch (reader_.kind()) {
    case ElementKind::kReal: return real_.text(reader_.real(position));
    case ElementKind::kInteger: return padded_left(reader_.integer_text(position), integer_width_);
    case ElementKind::kBool: return reader_.real(position) != 0 ? " True" : "False";
    case ElementKind::kText: return quoted(reader_.text(position));
    case ElementKind::kComplex: break;
  }
  std::string imaginary = imaginary_.text(reader_.imaginary(position));
  imaginary.insert(imaginary.find_last_not_of(' ') + 1, 1, 'j');
  return real_.text(reader_.real(position)) + imaginary;
}

std::string element_text(const ElementReader& reader, std::int64_t position) {
  switch (reader.kind()) {
    case ElementKind::kReal: return scalar_text(reader.real(position), reader.dtype());
    case ElementKind::kInteger: return reader.integer_text(position);
    case ElementKind::kBool: return reader.real(position) != 0 ? "True" : "False";
    case ElementKind::kText: return quoted(reader.text(position));
    case ElementKind::kComplex: break;
  }
  const auto part = [&](double value) {
    std::string text = scalar_text(value, reader.dtype());
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  };
  const double imaginary = reader.imaginary(position);
  const std::string sign = std::signbit(imaginary) && !std::isnan(imaginary) ? "" : "+";
  const double real = reader.real(position);
  // Python leaves a positive zero real part out.
  if (real == 0 && !std::signbit(real)) return part(imaginary) + "j";
  return fmt::format("({}{}{}j)", part(real), sign, part(imaginary));
}

}  // namespace tornasole::cli
