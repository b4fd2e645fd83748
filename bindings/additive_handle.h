// A sum of trees held by Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "growth_options.h"
#include "predict/additive.h"
#include "table.h"

namespace spinney {

struct AdditiveHandle {
  AdditiveHandle(Forest forest, std::size_t n_outputs, std::vector<std::uint32_t> categories)
      : additive(std::move(forest), n_outputs), n_categories(std::move(categories)) {}

  void check(const TableHandle& table) const {
    if (categories_of(table.table) != n_categories)
      throw nanobind::value_error("The table does not match the columns of the trees.");
  }

  const Additive additive;
  const std::vector<std::uint32_t> n_categories;
};

}  // namespace spinney
