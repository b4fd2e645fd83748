// A user-defined criterion passed from Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "criterion/user.h"

namespace spinney {

struct UserCriterionHandle {
  nanobind::object object;  // the Python object that the criterion calls, if any; visible to the garbage collector
  std::unique_ptr<const UserCriterion> criterion;
};

}  // namespace spinney
