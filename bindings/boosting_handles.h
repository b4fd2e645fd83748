// Options of boosting held by Python.
#pragma once

#include <cstddef>

#include "learn/boosting.h"

namespace spinney {

struct BoostingOptions {
  BoostingParams params;
};

// Throws unless the options by column match a table of n_columns.
void check_columns(const BoostingParams& params, std::size_t n_columns);

}  // namespace spinney
