#include "boost/kernels.h"

#include "base/cpu.h"

namespace spinney {

const BoostKernels& boost_kernels() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return avx512::boost_kernels;
    case Isa::avx2:
      return avx2::boost_kernels;
    case Isa::base:
      break;
  }
#endif
  return base::boost_kernels;
}

}  // namespace spinney
