// Tree growth requests from Python.
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

std::vector<std::uint32_t> categories_of(const Table& table);

// Options of surrogates and competing splits, with the caller's arrays by row.
struct SurrogateOptions {
  SurrogateParams surrogate_params;
  std::optional<Doubles1> case_weight, response, exposure;
};

// Additional options of rpart's conventions; see SurrogateParams.
struct RpartOptions {
  bool quirks, fold;
  std::vector<std::uint8_t> closed_cuts;
  std::vector<Row> rows;
  std::optional<double> price;
  std::vector<double> class_risk;
  std::optional<Doubles1> response, exposure;
  std::vector<double> class_factor;
};

// Options of tree growth, with the owners of the caller's arrays and criterion.
struct GrowthOptions {
  GrowParams params;
  std::uint32_t max_bins;
  std::optional<Doubles2> cost;
  std::optional<SurrogateOptions> surrogate_params;
  nb::object user;  // a UserCriterion or None; visible to the garbage collector
};

// The caller's target, checked and kept alive, and the parameters.
struct GrowthRequest {
  GrowthRequest(const TableHandle& table, const std::string& criterion, const nb::object& target,
                std::vector<std::uint32_t> n_classes, std::optional<Doubles1> weight, const GrowthOptions& options);

  Rule rule;
  TargetInput input;
  GrowParams params;
  std::uint32_t max_bins = 0;

 private:
  void read_classes(Codes2 codes, std::vector<std::uint32_t> n_classes, const std::optional<Doubles2>& cost);
  void read_values(Doubles2 values);

  std::optional<Codes2> codes_;
  std::optional<Doubles2> values_, cost_;
  std::optional<Doubles1> weight_;
  std::optional<SurrogateOptions> weighing_;
};

}  // namespace spinney
