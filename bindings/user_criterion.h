// A user's criterion as Python hands it over.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "criterion/user.h"

namespace spinney {

struct UserCriterionHandle {
  nanobind::object object;  // what the criterion calls, if that is Python; seen by the garbage collector
  std::unique_ptr<const UserCriterion> criterion;
};

}  // namespace spinney
