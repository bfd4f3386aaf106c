#pragma once

// Arrays of Python as views of the engine, and tensors of the engine as NumPy arrays. Neither copies elements.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>

#include "tornasole/tensor.h"

namespace tornasole::python {

// A view of an array, for as long as this lives. Takes what has the buffer protocol (NumPy), the types of ml_dtypes,
// dense PyTorch tensors in the memory of the processor, and whatever else exports DLPack from there; raises a
// TypeError-kind for other objects. Made and destroyed with the interpreter lock; the view may be read without it.
class BorrowedArray {
 public:
  explicit BorrowedArray(nanobind::handle array);
  ~BorrowedArray();
  BorrowedArray(const BorrowedArray&) = delete;
  BorrowedArray& operator=(const BorrowedArray&) = delete;

  const TensorView& view() const noexcept { return *view_; }

 private:
  bool take_torch(nanobind::handle array);
  bool take_buffer(nanobind::handle array);
  bool take_ml_dtype(nanobind::handle array);
  bool take_dlpack(nanobind::handle array);

  std::optional<TensorView> view_;
  Py_buffer buffer_{};  // released if it has an owner
  nanobind::ndarray<nanobind::ro> ndarray_;
  nanobind::object resolved_;  // a tensor made for the view
};

// The array owns the tensor. bfloat16 and float8 become the types of ml_dtypes if that can be imported, else unsigned
// integers of their size; texts an array of str.
nanobind::object to_numpy(Tensor tensor);

}  // namespace tornasole::python
