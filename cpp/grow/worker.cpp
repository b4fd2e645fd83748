#include "grow/worker.h"

#include "base/pool.h"

namespace spinney {

void for_each_column(Workers workers, std::size_t n_rows, std::size_t n_columns, Interrupt& interrupt,
                     FunctionRef<void(std::size_t, Worker&)> body) {
  const double estimated_ns = 8.0 * static_cast<double>(n_rows) * static_cast<double>(n_columns);
  parallel_for_if_worth(estimated_ns, n_columns, static_cast<int>(workers.size()), [&](std::size_t i, int worker) {
    interrupt.check();
    body(i, *workers[static_cast<std::size_t>(worker)]);
  });
}

std::optional<Choice> find_split(Workers workers, const Rules& rules, const Bins& bins, OpenNode& node,
                                 std::span<const Row> rows, Interrupt& interrupt) {
  TriedColumns& tried = workers[0]->tried;
  search_drawn_columns(rules, node, tried, [&](auto columns, auto candidates) {
    workers[0]->search_columns(workers, rules, bins, node, rows, columns, candidates, interrupt);
  });
  std::optional<Choice> choice = rules.choose(tried.columns, tried.candidates, node);
  if (choice) find_neighbours(rules, bins, choice->feature, rows, choice->candidate);
  return choice;
}

}  // namespace spinney
