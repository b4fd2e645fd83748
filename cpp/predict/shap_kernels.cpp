#include "predict/shap_tree.h"

namespace spinney {

const ShapKernels& shap_kernels() {
  return by_isa([](auto isa) -> const ShapKernels& { return shap_kernels_of(isa); });
}

}  // namespace spinney
