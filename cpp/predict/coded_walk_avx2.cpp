#if defined(__x86_64__)
#include "predict/coded_walk.h"

namespace spinney::avx2 {

constexpr std::size_t register_bytes = 32;

#include "predict/coded_body.h"

const CodedKernels coded_kernels{walk, walk_trees, rank, rank_row};

}  // namespace spinney::avx2
#endif
