#include <bit>
#include <cstdint>
#include <limits>

#include "base/parting.h"
#include "boost/kernels.h"
#include "loss/losses.h"

namespace spinney::base {

#include "boost/kernels_body.h"

}  // namespace spinney::base
