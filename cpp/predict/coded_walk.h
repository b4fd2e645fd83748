// Coding values, and walking coded rows down one coded tree: compiled once per instruction set, with the same results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney {

struct CodedNode {
  std::uint32_t code;
  std::uint32_t next;  // slot << shift | right child; in a leaf, itself
};

struct CodedTree {
  const CodedNode* nodes;
  const std::uint32_t* codes;  // of the rows: `width` each
  std::uint32_t width, shift, mask;
};

// One step down from node `at`.
inline std::uint32_t next_of(CodedNode node, std::uint32_t at, const std::uint32_t* codes, std::uint32_t shift,
                             std::uint32_t mask) {
  const std::uint32_t right = node.next & mask, left = at + 1;
  const std::uint32_t go_right = std::uint32_t{codes[node.next >> shift] < node.code} - 1;
  return left ^ ((left ^ right) & go_right);  // by masks: a branch is wrong half the time
}

struct CodedKernels {
  // leaf[i] = where row members[i] comes to rest.
  void (*walk)(const CodedTree& tree, const std::uint32_t* members, std::size_t n, std::uint32_t* leaf);

  // count[i] = how many of the thresholds, ascending, lie below x[i]. n_x is a multiple of 8.
  void (*count_below)(const double* thresholds, std::size_t n, const double* x, std::size_t n_x, std::uint32_t* count);
};

const CodedKernels& coded_kernels();

namespace base {
extern const CodedKernels coded_kernels;
}
namespace avx512 {
extern const CodedKernels coded_kernels;
}

}  // namespace spinney
