#include "base/cpu.h"
#include "predict/additive.h"

namespace spinney {

namespace base {
extern const MaskKernels mask_kernels;
}
namespace avx2 {
extern const MaskKernels mask_kernels;
}
namespace avx512 {
extern const MaskKernels mask_kernels;
}

const MaskKernels& mask_kernels() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return avx512::mask_kernels;
    case Isa::avx2:
      return avx2::mask_kernels;
    case Isa::base:
      break;
  }
#endif
  return base::mask_kernels;
}

}  // namespace spinney
