#include "base/cpu.h"
#include "predict/shap_tree.h"

namespace spinney {

const ShapKernels& shap_kernels() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return avx512::shap_kernels;
    case Isa::avx2:
      return avx2::shap_kernels;
    case Isa::base:
      break;
  }
#endif
  return base::shap_kernels;
}

}  // namespace spinney
