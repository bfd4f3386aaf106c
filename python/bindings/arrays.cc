#include "bindings/arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python_errors.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

static_assert(std::endian::native == std::endian::little, "arrays are taken as little-endian");

std::optional<DType> integer_dtype(bool is_signed, std::size_t size) {
  switch (size) {
    case 1: return is_signed ? DType::kInt8 : DType::kUint8;
    case 2: return is_signed ? DType::kInt16 : DType::kUint16;
    case 4: return is_signed ? DType::kInt32 : DType::kUint32;
    case 8: return is_signed ? DType::kInt64 : DType::kUint64;
    default: return std::nullopt;
  }
}

// A format of the struct module, as the buffer protocol gives it. Big-endian and structured elements have none.
std::optional<DType> format_dtype(const char* format, std::size_t size) {
  if (format == nullptr) return DType::kUint8;
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  const std::string_view text = format;
  if (text == "Zf") return DType::kComplex64;
  if (text == "Zd") return DType::kComplex128;
  if (text.size() != 1) return std::nullopt;
  switch (text.front()) {
    case '?': return DType::kBool;
    case 'e': return DType::kFloat16;
    case 'f': return DType::kFloat32;
    case 'd': return DType::kFloat64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': return integer_dtype(true, size);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': return integer_dtype(false, size);
    default: return std::nullopt;
  }
}

std::optional<DType> dlpack_dtype(const nb::dlpack::dtype& type) {
  if (type.lanes != 1) return std::nullopt;
  // An element of another width than ours would have us read past the end: complex numbers of two halves are such.
  const auto of_bits = [&](std::initializer_list<std::pair<int, DType>> known) -> std::optional<DType> {
    for (const auto& [bits, dtype] : known) {
      if (bits == type.bits) return dtype;
    }
    return std::nullopt;
  };
  switch (type.code) {
    case 0: return type.bits % 8 == 0 ? integer_dtype(true, type.bits / 8U) : std::nullopt;
    case 1: return type.bits % 8 == 0 ? integer_dtype(false, type.bits / 8U) : std::nullopt;
    case 2: return of_bits({{16, DType::kFloat16}, {32, DType::kFloat32}, {64, DType::kFloat64}});
    case 4: return of_bits({{16, DType::kBfloat16}});
    case 5: return of_bits({{64, DType::kComplex64}, {128, DType::kComplex128}});
    case 6: return of_bits({{8, DType::kBool}});
    case 10: return of_bits({{8, DType::kFloat8E4m3fn}});
    case 12: return of_bits({{8, DType::kFloat8E5m2}});
    default: return std::nullopt;
  }
}

// Dimensions with strides in units of `unit` bytes; row-major ones are left out.
TensorView make_view(DType dtype, const void* data, std::span<const std::int64_t> shape,
                     std::span<const std::int64_t> strides, std::int64_t unit) {
  std::array<std::int64_t, 64> bytes{};
  std::int64_t expected = static_cast<std::int64_t>(dtype_size(dtype));
  bool is_contiguous = true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    bytes[axis] = strides[axis] * unit;
    if (shape[axis] != 1 && bytes[axis] != expected) is_contiguous = false;
    expected *= shape[axis];
  }
  if (is_contiguous || expected == 0) return {dtype, data, Shape(shape)};
  return {dtype, data, Shape(shape), std::span<const std::int64_t>(bytes.data(), shape.size())};
}

// The table of C functions that a type may offer as __dlpack_c_exchange_api__ (DLPack 1.2 and later); only what is
// called here has its type.
struct ExchangeTable {
  std::uint32_t major, minor;
  ExchangeTable* older;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  int (*tensor_from_object)(void* object, nb::dlpack::dltensor* out);  // borrows; may be null
  void* current_stream;
};

// What is needed of PyTorch, once it was imported by somebody. Never destroyed: the interpreter may be gone by then.
struct Torch {
  nb::object tensor_type, parameter_type, strided;
  int (*tensor_from_object)(void* object, nb::dlpack::dltensor* out) = nullptr;  // null before PyTorch 2.10
  std::vector<std::pair<PyObject*, DType>> dtypes;
  nb::object data_ptr = nb::str("data_ptr"), stride = nb::str("stride"), shape = nb::str("shape"),
             dtype = nb::str("dtype"), is_cpu = nb::str("is_cpu"), layout = nb::str("layout"),
             is_conj = nb::str("is_conj"), is_neg = nb::str("is_neg");
};

// PyTorch's own function that fills in a DLTensor, for tensors that are of no subclass.
auto find_exchange(nb::handle tensor_type) -> decltype(Torch::tensor_from_object) {
  if (!nb::hasattr(tensor_type, "__dlpack_c_exchange_api__")) return nullptr;
  const nb::object capsule = tensor_type.attr("__dlpack_c_exchange_api__");
  auto* table = static_cast<ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (table == nullptr) PyErr_Clear();
  while (table != nullptr && table->major != 1) table = table->older;
  return table == nullptr ? nullptr : table->tensor_from_object;
}

const Torch* find_torch() {
  static Torch* torch = nullptr;
  if (torch != nullptr) return torch;
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (module == nullptr || !nb::hasattr(module, "nn") || !nb::hasattr(module, "Tensor")) return nullptr;
  auto* made = new Torch;
  const nb::handle handle(module);
  made->tensor_type = handle.attr("Tensor");
  made->parameter_type = handle.attr("nn").attr("Parameter");
  made->strided = handle.attr("strided");
  made->tensor_from_object = find_exchange(made->tensor_type);
  constexpr std::pair<const char*, DType> kNames[] = {{"float32", DType::kFloat32},
                                                      {"float64", DType::kFloat64},
                                                      {"int32", DType::kInt32},
                                                      {"uint8", DType::kUint8},
                                                      {"int16", DType::kInt16},
                                                      {"int8", DType::kInt8},
                                                      {"complex64", DType::kComplex64},
                                                      {"int64", DType::kInt64},
                                                      {"bool", DType::kBool},
                                                      {"bfloat16", DType::kBfloat16},
                                                      {"uint16", DType::kUint16},
                                                      {"complex128", DType::kComplex128},
                                                      {"float16", DType::kFloat16},
                                                      {"uint32", DType::kUint32},
                                                      {"uint64", DType::kUint64},
                                                      {"float8_e5m2", DType::kFloat8E5m2},
                                                      {"float8_e4m3fn", DType::kFloat8E4m3fn}};
  for (const auto& [name, dtype] : kNames) {
    if (nb::hasattr(handle, name)) made->dtypes.emplace_back(nb::object(handle.attr(name)).release().ptr(), dtype);
  }
  torch = made;
  return torch;
}

nb::object call_method(nb::handle object, const nb::object& name) {
  return nb::steal(PyObject_CallMethodNoArgs(object.ptr(), name.ptr()));
}
nb::object checked(nb::object object) {
  if (!object.is_valid()) nb::raise_python_error();
  return object;
}
nb::object attribute(nb::handle object, const nb::object& name) {
  return checked(nb::steal(PyObject_GetAttr(object.ptr(), name.ptr())));
}

// A tuple of ints; false if it is longer than any tensor.
bool read_dims(nb::handle tuple, std::array<std::int64_t, 64>* dims, std::size_t* rank) {
  if (!PyTuple_Check(tuple.ptr())) return false;
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(tuple.ptr()));
  if (count > dims->size()) return false;
  for (std::size_t i = 0; i < count; ++i) {
    (*dims)[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i)));
  }
  if (PyErr_Occurred() != nullptr) nb::raise_python_error();
  *rank = count;
  return true;
}

// The quick way; nothing if the tensor needs the slow one.
std::optional<TensorView> exchanged_view(const Torch& torch, nb::handle array) {
  nb::dlpack::dltensor tensor;
  if (torch.tensor_from_object(array.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  constexpr std::uint8_t kComplexCode = 5;
  if (tensor.device.device_type != nb::device::cpu::value || tensor.dtype.code == kComplexCode) return std::nullopt;
  const std::optional<DType> dtype = dlpack_dtype(tensor.dtype);
  if (!dtype || tensor.ndim < 0 || tensor.ndim > 64) return std::nullopt;
  const char* data = static_cast<const char*>(tensor.data) + tensor.byte_offset;
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  const std::size_t size = dtype_size(*dtype);
  const TensorView view =
      make_view(*dtype, data, {tensor.shape, rank}, {tensor.strides, rank}, static_cast<std::int64_t>(size));
  // Elements that are still to be negated are imaginary parts: every second number, from the second one on.
  const bool may_be_imaginary = !view.is_contiguous() || reinterpret_cast<std::uintptr_t>(data) % (2 * size) != 0;
  if (may_be_imaginary && checked(call_method(array, torch.is_neg)).ptr() == Py_True) return std::nullopt;
  return view;
}

[[noreturn]] void refuse(nb::handle array) {
  raise({ErrorCode::kInvalid,
         std::string("a value of type ") + nb::type_name(array.type()).c_str() +
             " is no dense array in the memory of the processor: an array of NumPy, a tensor, or anything with "
             "DLPack is wanted",
         ErrorKind::kType});
}

}  // namespace

BorrowedArray::BorrowedArray(nb::handle array) {
  try {
    if (take_torch(array) || take_buffer(array) || take_ml_dtype(array) || take_dlpack(array)) return;
  } catch (const nb::python_error& error) {
    // A nested tensor has no shape, another object fails where it is asked: no array either way.
    if (!error.matches(PyExc_Exception)) throw;
  }
  refuse(array);
}

BorrowedArray::~BorrowedArray() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

bool BorrowedArray::take_torch(nb::handle array) {
  const Torch* torch = find_torch();
  if (torch == nullptr ||
      PyObject_TypeCheck(array.ptr(), reinterpret_cast<PyTypeObject*>(torch->tensor_type.ptr())) == 0) {
    return false;
  }
  if (torch->tensor_from_object != nullptr &&
      (array.type().is(torch->tensor_type) || array.type().is(torch->parameter_type))) {
    view_ = exchanged_view(*torch, array);
    if (view_) return true;
  }
  if (attribute(array, torch->is_cpu).ptr() != Py_True || !attribute(array, torch->layout).is(torch->strided)) {
    return false;
  }
  const nb::object type = attribute(array, torch->dtype);
  std::optional<DType> dtype;
  for (const auto& [known, code] : torch->dtypes) {
    if (known == type.ptr()) dtype = code;
  }
  if (!dtype) return false;
  // Bits that PyTorch applies when it computes: the elements in memory are not yet the values.
  if (*dtype == DType::kComplex64 || *dtype == DType::kComplex128) {
    if (checked(call_method(array, torch->is_conj)).ptr() == Py_True) array = resolved_ = array.attr("resolve_conj")();
  }
  if (checked(call_method(array, torch->is_neg)).ptr() == Py_True) array = resolved_ = array.attr("resolve_neg")();
  std::array<std::int64_t, 64> shape{};
  std::array<std::int64_t, 64> strides{};
  std::size_t rank = 0;
  if (!read_dims(attribute(array, torch->shape), &shape, &rank)) return false;
  if (!read_dims(checked(call_method(array, torch->stride)), &strides, &rank)) return false;
  const nb::object pointer = checked(call_method(array, torch->data_ptr));
  const void* data = PyLong_AsVoidPtr(pointer.ptr());
  if (data == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  // A tensor that only stands for others, such as the parts of a distributed one, has elements and no memory.
  const bool has_elements = std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(rank),
                                        [](std::int64_t dim) { return dim > 0; });
  if (data == nullptr && has_elements) refuse(array);
  view_ = make_view(*dtype, data, {shape.data(), rank}, {strides.data(), rank},
                    static_cast<std::int64_t>(dtype_size(*dtype)));
  return true;
}

bool BorrowedArray::take_buffer(nb::handle array) {
  if (PyObject_CheckBuffer(array.ptr()) == 0) return false;
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    buffer_.obj = nullptr;
    return false;
  }
  const std::optional<DType> dtype = format_dtype(buffer_.format, static_cast<std::size_t>(buffer_.itemsize));
  const auto rank = static_cast<std::size_t>(buffer_.ndim);
  if (!dtype || rank > 64) {
    PyBuffer_Release(&buffer_);  // else who owns it could not change its size for ever after
    return false;
  }
  std::array<std::int64_t, 64> shape{};
  std::array<std::int64_t, 64> strides{};
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = buffer_.shape[i];
    strides[i] = buffer_.strides[i];
  }
  view_ = make_view(*dtype, buffer_.buf, {shape.data(), rank}, {strides.data(), rank}, 1);
  return true;
}

bool BorrowedArray::take_ml_dtype(nb::handle array) {
  if (!nb::hasattr(array, "__array_interface__") || !nb::hasattr(array, "dtype")) return false;
  const auto name = nb::cast<std::string>(nb::str(nb::getattr(array.attr("dtype"), "name", nb::str(""))));
  std::optional<DType> dtype;
  for (const DType candidate : {DType::kBfloat16, DType::kFloat8E5m2, DType::kFloat8E4m3fn}) {
    if (name == dtype_name(candidate)) dtype = candidate;
  }
  if (!dtype) return false;
  const nb::object interface = array.attr("__array_interface__");
  std::array<std::int64_t, 64> shape{};
  std::array<std::int64_t, 64> strides{};
  std::size_t rank = 0;
  if (!read_dims(interface["shape"], &shape, &rank)) return false;
  if (!read_dims(array.attr("strides"), &strides, &rank)) return false;
  const void* data = PyLong_AsVoidPtr(nb::object(interface["data"][0]).ptr());
  view_ = make_view(*dtype, data, {shape.data(), rank}, {strides.data(), rank}, 1);
  return true;
}

bool BorrowedArray::take_dlpack(nb::handle array) {
  if (!nb::hasattr(array, "__dlpack__") || !nb::try_cast(array, ndarray_) || !ndarray_.is_valid()) return false;
  if (ndarray_.device_type() != nb::device::cpu::value) return false;
  const std::optional<DType> dtype = dlpack_dtype(ndarray_.dtype());
  const std::size_t rank = ndarray_.ndim();
  if (!dtype || rank > 64) return false;
  std::array<std::int64_t, 64> shape{};
  std::array<std::int64_t, 64> strides{};
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = static_cast<std::int64_t>(ndarray_.shape(i));
    strides[i] = ndarray_.stride(i);
  }
  view_ = make_view(*dtype, ndarray_.data(), {shape.data(), rank}, {strides.data(), rank},
                    static_cast<std::int64_t>(dtype_size(*dtype)));
  return true;
}

namespace {

// The type NumPy gets, and what the array is then viewed as, if anything: a type of NumPy, or of ml_dtypes if that is
// there.
struct NumpyType {
  nb::dlpack::dtype dtype;
  const char* view = nullptr;
  bool is_of_ml_dtypes = false;
};

NumpyType numpy_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(dtype_size(dtype) * 8);
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32: return {{0, bits, 1}};
    // What comes in is C's long long: equal to int64, but another type, and printed as such.
    case DType::kInt64: return {{0, bits, 1}, "int64"};
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32: return {{1, bits, 1}};
    case DType::kUint64: return {{1, bits, 1}, "uint64"};
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64: return {{2, bits, 1}};
    case DType::kComplex64:
    case DType::kComplex128: return {{5, bits, 1}};
    case DType::kBool: return {{6, bits, 1}};
    case DType::kBfloat16: return {{1, bits, 1}, "bfloat16", true};
    case DType::kFloat8E5m2: return {{1, bits, 1}, "float8_e5m2", true};
    case DType::kFloat8E4m3fn: return {{1, bits, 1}, "float8_e4m3fn", true};
    case DType::kString: break;
  }
  return {{1, 8, 1}};
}

nb::object texts_to_numpy(const Tensor& tensor) {
  nb::list texts;
  for (const std::string& text : tensor.texts()) texts.append(nb::str(text.c_str(), text.size()));
  nb::list shape;
  for (const std::int64_t extent : tensor.shape().dims()) shape.append(extent);
  const nb::module_ numpy = nb::module_::import_("numpy");
  return numpy.attr("array")(texts, nb::arg("dtype") = numpy.attr("str_")).attr("reshape")(shape);
}

}  // namespace

nb::object to_numpy(Tensor tensor) {
  if (tensor.dtype() == DType::kString) return texts_to_numpy(tensor);
  auto* owned = new Tensor(std::move(tensor));
  const nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<Tensor*>(pointer); });
  const NumpyType type = numpy_type(owned->dtype());
  std::vector<std::size_t> shape;
  for (const std::int64_t extent : owned->shape().dims()) shape.push_back(static_cast<std::size_t>(extent));
  // Nobody else sees these bytes: the array may be written to.
  void* data = const_cast<char*>(owned->bytes().data());
  nb::object array = nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, type.dtype));
  if (type.view == nullptr) return array;
  if (!type.is_of_ml_dtypes) return array.attr("view")(type.view);
  PyObject* module = PyImport_ImportModule("ml_dtypes");
  if (module == nullptr) {
    PyErr_Clear();
    return array;
  }
  return array.attr("view")(nb::steal(module).attr(type.view));
}

}  // namespace tornasole::python
