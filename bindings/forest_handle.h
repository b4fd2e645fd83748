// A forest held by Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "data/sample.h"
#include "growth_options.h"
#include "predict/forest_walk.h"
#include "table.h"
#include "tree/forest.h"

namespace spinney {

// A forest with the data needed to walk it. Immutable, so threads may share it.
struct ForestHandle {
  ForestHandle(Forest f, std::vector<std::uint32_t> categories)
      : forest(std::move(f)), n_categories(std::move(categories)), walker(forest) {}
  ForestHandle(const ForestHandle&) = delete;

  void check(const TableHandle& table) const {
    if (categories_of(table.table) != n_categories)
      throw nanobind::value_error("The table does not match the columns of the forest.");
  }

  const Forest forest;
  const std::vector<std::uint32_t> n_categories;
  const ForestWalker walker;
};

struct SamplingHandle {
  Sampling sampling;
};

}  // namespace spinney
