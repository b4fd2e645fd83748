#include "tree/waiting.h"

#include "base/platform.h"

namespace spinney {

WaitingArrays WaitingRoom::Bench::take(std::size_t n_bytes) {
  constexpr std::size_t least = std::size_t{1} << 14, alignment = 8;
  n_bytes = (n_bytes + alignment - 1) / alignment * alignment;
  WaitingArrays taken{{memory}, n_used};
  n_used += n_bytes;
  while (n_used > memory->size()) {
    n_used -= memory->size();
    memory = std::make_shared<LargeArray<std::byte>>(std::clamp(2 * memory->size(), least, platform::large_page));
    taken.memory.push_back(memory);
  }
  return taken;
}

WaitingTree WaitingRoom::keep(const Tree& tree) {
  WaitingTree kept;
  kept.value_width = tree.value_width;
  kept.shrinkage = tree.shrinkage;
  kept.n_nodes = tree.size();
  kept.n_set_words = tree.sets.size();
  const auto n_bytes = [&](auto... array) { return ((kept.length(array) * sizeof((tree.*array)[0])) + ...); };
  kept.values = values_.take(std::apply(n_bytes, WaitingTree::value_arrays));
  kept.others = others_.take(std::apply(n_bytes, WaitingTree::other_arrays));
  const auto copy_to = [&](const WaitingArrays& part, const auto& arrays) {
    std::size_t n_done = 0;
    kept.for_each_run(part, arrays, [&](auto array, auto* first, std::size_t n) {
      std::copy_n((tree.*array).data() + n_done, n, first);
      n_done = n_done + n < kept.length(array) ? n_done + n : 0;
    });
  };
  copy_to(kept.values, WaitingTree::value_arrays);
  copy_to(kept.others, WaitingTree::other_arrays);
  return kept;
}

}  // namespace spinney
