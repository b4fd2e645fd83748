#include "data/read.h"

#include <limits>

namespace spinney {

void read_values(const Column& c, const Row* rows, std::size_t n, double* values) {
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  with_type(c.dtype, [&]<class T>(const T*) {
    if (c.is_sparse()) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = sparse_position(c, rows[i]);
        values[i] = at == c.n_sparse ? 0.0 : static_cast<double>(load<T>(c, at));
      }
    } else if (c.mask != nullptr) {
      for (std::size_t i = 0; i < n; ++i)
        values[i] = is_masked(c, rows[i]) ? missing : static_cast<double>(load<T>(c, rows[i]));
    } else if (c.is_category()) {
      for (std::size_t i = 0; i < n; ++i) {
        const T code = load<T>(c, rows[i]);
        values[i] = code < T{0} ? missing : static_cast<double>(code);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(load<T>(c, rows[i]));
    }
  });
}

}  // namespace spinney
