#include "tree/tree_buffer.h"

#include "base/platform.h"

namespace spinney {

BufferedArrays TreeBuffer::Pages::take(std::size_t n_bytes) {
  constexpr std::size_t least = std::size_t{1} << 14, alignment = 8;
  n_bytes = (n_bytes + alignment - 1) / alignment * alignment;
  BufferedArrays taken{{memory}, n_used};
  n_used += n_bytes;
  while (n_used > memory->size()) {
    n_used -= memory->size();
    memory = std::make_shared<LargeArray<std::byte>>(std::clamp(2 * memory->size(), least, platform::large_page));
    taken.memory.push_back(memory);
  }
  return taken;
}

BufferedTree TreeBuffer::add(const Tree& tree) {
  BufferedTree buffered;
  buffered.value_width = tree.value_width;
  buffered.shrinkage = tree.shrinkage;
  buffered.n_nodes = tree.size();
  buffered.n_set_words = tree.sets.size();
  const auto n_bytes = [&](auto... array) { return ((buffered.length(array) * sizeof((tree.*array)[0])) + ...); };
  buffered.values = values_.take(std::apply(n_bytes, BufferedTree::value_arrays));
  buffered.others = others_.take(std::apply(n_bytes, BufferedTree::other_arrays));
  const auto copy_to = [&](const BufferedArrays& part, const auto& arrays) {
    std::size_t n_done = 0;
    buffered.for_each_run(part, arrays, [&](auto array, auto* first, std::size_t n) {
      std::copy_n((tree.*array).data() + n_done, n, first);
      n_done = n_done + n < buffered.length(array) ? n_done + n : 0;
    });
  };
  copy_to(buffered.values, BufferedTree::value_arrays);
  copy_to(buffered.others, BufferedTree::other_arrays);
  return buffered;
}

}  // namespace spinney
