#include "predict/additive.h"

namespace spinney {

const MaskKernels& mask_kernels() {
  return by_isa([](auto isa) -> const MaskKernels& { return mask_kernels_of(isa); });
}

}  // namespace spinney
