#include "cells/kernels.h"

#include "base/cpu.h"

namespace spinney {

const Kernels& kernels() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return avx512::kernels;
    case Isa::avx2:
      return avx2::kernels;
    case Isa::base:
      break;
  }
#endif
  return base::kernels;
}

}  // namespace spinney
