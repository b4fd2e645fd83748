#include "predict/coded_walk.h"

#include "tree/tree.h"

namespace spinney {

bool category_goes_left(const CodedTree& tree, CodedNode node, std::uint32_t code) {
  if (code == missing_category) return node.next & tree.missing_left;
  return category_goes_left(tree.sets + (node.code >> 1), node.code & 1, code);
}

const CodedKernels& coded_kernels() {
  return by_isa([](auto isa) -> const CodedKernels& { return coded_kernels_of(isa); });
}

}  // namespace spinney
