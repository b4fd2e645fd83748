// A sum of trees as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "growing.h"
#include "predict/additive.h"
#include "table.h"

namespace spinney {

struct AdditiveHandle {
  AdditiveHandle(Forest forest, std::size_t n_outputs, std::vector<std::uint32_t> categories)
      : additive(std::move(forest), n_outputs), n_categories(std::move(categories)) {}

  void check(const TableHandle& table) const {
    if (categories_of(table.table) != n_categories) throw nanobind::value_error("the table does not fit the trees");
  }

  const Additive additive;
  const std::vector<std::uint32_t> n_categories;
};

}  // namespace spinney
