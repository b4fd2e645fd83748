// What Python asks the engine to grow.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "criterion/target.h"
#include "grow/params.h"
#include "table.h"

namespace spinney {

template <class T>
T option(const nb::dict& options, const char* name) {
  return nb::cast<T>(options[name]);
}

std::vector<std::uint32_t> categories_of(const Table& table);

// The caller's numbers by row, which a Weighing borrows.
struct WeighingArrays {
  std::optional<Doubles1> case_weight, response, exposure;

  const double* read(const nb::dict& o, const char* name, std::optional<Doubles1>& array, std::size_t n_rows) {
    if (!o.contains(name) || o[name].is_none()) return nullptr;
    array = option<Doubles1>(o, name);
    if (array->shape(0) != n_rows) throw nb::value_error("numbers by row and table differ in rows");
    return array->data();
  }
};

// The caller's arrays, checked and kept alive, and the parameters.
struct GrowthRequest {
  GrowthRequest(const TableHandle& table, const std::string& criterion, const nb::object& target,
                std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight, const nb::dict& options);

  Rule rule;
  TargetInput input;
  GrowParams params;
  std::uint32_t max_bins = 0;

 private:
  std::optional<Codes2> codes_;
  std::optional<Doubles2> values_, cost_;
  std::optional<Doubles1> weight_;
  WeighingArrays arrays_;
};

}  // namespace spinney
