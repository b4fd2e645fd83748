// A user's criterion as Python hands it over.
#pragma once

#include <memory>

#include "criterion/user.h"

namespace spinney {

struct UserCriterionHandle {
  std::unique_ptr<const UserCriterion> criterion;
};

}  // namespace spinney
