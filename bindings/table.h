// A table held by Python: the engine's views with the owners of their memory.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "data/column.h"
#include "data/pool.h"

namespace spinney {

struct TableHandle {
  explicit TableHandle(std::size_t n_rows) {
    if (n_rows >= UINT32_MAX) throw std::invalid_argument("A table may have at most 4294967294 rows.");
    table.n_rows = n_rows;
  }
  void add_number(nanobind::object values, nanobind::object missing);
  void add_matrix(nanobind::object values);
  void add_category(nanobind::object codes, std::uint32_t n_categories);
  void add_sparse(nanobind::object rows, nanobind::object values);
  void add_csc(nanobind::object starts, nanobind::object rows, nanobind::object values);
  const Column& at(std::size_t j) const;

  Table table;
  std::vector<nanobind::object> owners;
  std::shared_ptr<const Pools> pools;  // owner of columns with pooled rare categories
};

}  // namespace spinney
