#include "predict/additive.h"

namespace spinney::base {

extern const MaskKernels mask_kernels;
constexpr std::size_t mask_bytes = 16;  // of a register

#include "predict/mask_bytes.h"

}  // namespace spinney::base
