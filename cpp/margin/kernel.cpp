#include "margin/kernel.h"

namespace spinney {

const MarginKernels& margin_kernels() {
  return by_isa([](auto isa) -> const MarginKernels& { return margin_kernels_of(isa); });
}

}  // namespace spinney
