#pragma once

// KnownModel: what must be as it was for a step of a model to need no look at it, and what is saved as it begins.

#include <nanobind/nanobind.h>

namespace tornasole::python {

class KnownModel {
 public:
  // `places`: (dict of a module, key, parameter, requires_grad) of each parameter, (dict, key, part, None) of each
  // part. `sizes`: (dict, members) of each dict that parameters or parts are found in. `parameters`: a TensorList, or
  // None.
  KnownModel(nanobind::list places, nanobind::list sizes, nanobind::object parameters);

  // Whether every parameter and part is still where it was found, and the dicts have as many members as then.
  bool is_unchanged() const;
  void save_parameters() const;

 private:
  nanobind::list places_, sizes_;
  nanobind::object parameters_;
};

}  // namespace tornasole::python
