#include "predict/coded_walk.h"

#include "base/cpu.h"
#include "tree/tree.h"

namespace spinney {

bool category_goes_left(const CodedTree& tree, CodedNode node, std::uint32_t code) {
  if (code == missing_category) return node.next & tree.missing_left;
  return category_goes_left(tree.sets + (node.code >> 1), node.code & 1, code);
}

namespace base {
constexpr std::size_t register_bytes = 16;

#include "predict/coded_body.h"

const CodedKernels coded_kernels{walk, walk_trees, rank, rank_row};
}  // namespace base

const CodedKernels& coded_kernels() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512:
      return avx512::coded_kernels;
    case Isa::avx2:
      return avx2::coded_kernels;
    case Isa::base:
      break;
  }
#endif
  return base::coded_kernels;
}

}  // namespace spinney
