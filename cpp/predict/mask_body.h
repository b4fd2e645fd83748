// The body of the kernel, included by one translation unit per instruction set, inside that unit's own namespace.

typedef std::uint8_t Bytes __attribute__((vector_size(mask_bytes)));

// Each node is tested for all rows before the next: what kind of node it is, is then asked once for many rows.
template <std::size_t mask_rows>
static void evaluate(const MaskTree& tree, const std::uint8_t* codes, std::uint8_t* masks, double* __restrict sums) {
  constexpr std::size_t n_parts = mask_rows / sizeof(Bytes);
  Bytes reach[n_parts], leaf_of[n_parts], leaf = {};
  for (std::size_t p = 0; p < n_parts; ++p) {
    reach[p] = ~Bytes{};
    leaf_of[p] = Bytes{};
  }
  const std::uint8_t* table = tree.tables;
  const MaskNode* const end = tree.nodes + tree.n_nodes;
  for (const MaskNode* node = tree.nodes;; ++node) {
    if (node->kind == MaskNode::leaf) {
      for (std::size_t p = 0; p < n_parts; ++p) leaf_of[p] |= reach[p] & leaf;
      leaf += 1;
      if (node + 1 == end) break;
      masks -= mask_rows;
      __builtin_memcpy(reach, masks, mask_rows);
      continue;
    }
    const std::uint8_t* code_at = codes + node->slot * mask_rows;
    Bytes left[n_parts];
    if (node->kind == MaskNode::category) {
      std::uint8_t* to = reinterpret_cast<std::uint8_t*>(left);
      for (std::size_t r = 0; r < mask_rows; ++r) to[r] = table[code_at[r]];
      table += 256;
    } else {
      const Bytes cut = Bytes{} + node->cut;
      for (std::size_t p = 0; p < n_parts; ++p) {
        Bytes code;
        __builtin_memcpy(&code, code_at + p * sizeof(Bytes), sizeof code);
        left[p] = reinterpret_cast<Bytes>(code <= cut);
        if (node->kind == MaskNode::missing_left) left[p] |= reinterpret_cast<Bytes>(code == (Bytes{} + 255));
      }
    }
    for (std::size_t p = 0; p < n_parts; ++p) {
      const Bytes right = reach[p] & ~left[p];
      __builtin_memcpy(masks + p * sizeof(Bytes), &right, sizeof right);
      reach[p] &= left[p];
    }
    masks += mask_rows;
  }
  const std::uint8_t* at = reinterpret_cast<const std::uint8_t*>(leaf_of);
  const double* __restrict values = tree.values;
#pragma GCC ivdep
  for (std::size_t r = 0; r < mask_rows; ++r) sums[r] += values[at[r]];
}

const MaskKernels mask_kernels{evaluate<few_rows>, evaluate<many_rows>};
