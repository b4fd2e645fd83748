#if defined(__x86_64__)
#include "predict/additive.h"

namespace spinney::avx2 {

extern const MaskKernels mask_kernels;
constexpr std::size_t mask_bytes = 32;  // of a register

#include "predict/mask_bytes.h"

}  // namespace spinney::avx2
#endif
