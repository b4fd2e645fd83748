// The body of the kernel, included by one translation unit per instruction set, inside that unit's own namespace. That unit
// says what a register of codes and one of leaves is, `Bytes` and `Leaves`; how rows are noted, `Rows`: all, those above a
// cut; how leaves are counted for some rows; and how the values of leaves are added.

// Out of line: it would take registers from the loop over nodes, most of which are of numbers.
[[gnu::noinline]] static void look_up(const std::int8_t* table, const std::int8_t* code, std::size_t n,
                                      std::int8_t* out) {
  for (std::size_t r = 0; r < n; ++r) out[r] = table[static_cast<std::uint8_t>(code[r])];
}

template <std::size_t n_rows>
static void evaluate(const MaskTree& tree, const std::int8_t* codes, std::uint8_t* masks, double* __restrict sums) {
  constexpr std::size_t n_parts = n_rows / sizeof(Bytes), level_bytes = n_parts * sizeof(Rows);
  Leaves leaf[n_parts] = {};
  const Rows all = all_rows();
  for (std::size_t p = 0; p < n_parts; ++p) __builtin_memcpy(masks + p * sizeof(Rows), &all, sizeof(Rows));
  const std::int8_t* table = tree.tables;
  for (const MaskNode *next = tree.nodes, *end = next + tree.n_nodes; next != end; ++next) {
    const MaskNode node = *next;
    const std::int8_t* code_at = codes + node.slot * n_rows;
    std::int8_t looked_up[n_rows];
    if (node.is_category) {
      look_up(table, code_at, n_rows, looked_up);
      code_at = looked_up;
      table += 256;
    }
    std::uint8_t* const at = masks + node.level * level_bytes;
    std::uint8_t* const left_to = at + node.right_splits * level_bytes;
    std::uint8_t* const right_to = at + !node.right_splits * level_bytes;
    const Bytes cut = Bytes{} + node.cut;
    const Leaves n_left = Leaves{} + node.n_left;
    for (std::size_t p = 0; p < n_parts; ++p) {
      Bytes code;
      Rows here;
      __builtin_memcpy(&code, code_at + p * sizeof(Bytes), sizeof code);
      __builtin_memcpy(&here, at + p * sizeof(Rows), sizeof here);
      const Rows right = those_above(here, code, cut), left = here & ~right;
      __builtin_memcpy(left_to + p * sizeof(Rows), &left, sizeof left);
      __builtin_memcpy(right_to + p * sizeof(Rows), &right, sizeof right);
      leaf[p] = count_leaves(leaf[p], right, n_left);
    }
  }
  add_values(tree, reinterpret_cast<const std::uint8_t*>(leaf), n_rows, sums);
}

const MaskKernels mask_kernels{evaluate<few_rows>, evaluate<many_rows>};
