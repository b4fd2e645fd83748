#if defined(__x86_64__)
#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "base/parting.h"
#include "boost/kernels.h"
#include "loss/losses.h"

namespace spinney::avx2 {

#include "boost/kernels_body.h"

}  // namespace spinney::avx2
#endif
