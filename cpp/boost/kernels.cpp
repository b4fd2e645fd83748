#include "boost/kernels.h"

namespace spinney {

const BoostKernels& boost_kernels() {
  return by_isa([](auto isa) -> const BoostKernels& { return boost_kernels_of(isa); });
}

}  // namespace spinney
