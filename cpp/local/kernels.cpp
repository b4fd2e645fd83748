#include "local/kernels.h"

namespace spinney {

const LocalKernels& local_kernels() {
  return by_isa([](auto isa) -> const LocalKernels& { return local_kernels_of(isa); });
}

}  // namespace spinney
