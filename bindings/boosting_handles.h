// Options of boosting as Python holds them.
#pragma once

#include <cstddef>

#include "learn/boosting.h"

namespace spinney {

struct BoostingOptions {
  BoostingParams params;
};

// Throws unless what is said of columns fits a table of so many.
void check_columns(const BoostingParams& params, std::size_t n_columns);

}  // namespace spinney
