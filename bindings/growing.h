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

std::vector<std::uint32_t> categories_of(const Table& table);

// How splits are weighed, with the caller's numbers by row that this borrows.
struct WeighingOptions {
  Weighing weighing;
  std::optional<Doubles1> case_weight, response, exposure;
};

// What rpart's rules add to that; see Weighing.
struct RpartOptions {
  bool quirks, fold;
  std::vector<std::uint8_t> closed_cuts;
  std::vector<Row> rows;
  std::optional<double> price;
  std::vector<double> class_risk;
  std::optional<Doubles1> response, exposure;
  std::vector<double> class_factor;
};

// How a tree is to grow, with what keeps the caller's arrays and criterion alive.
struct GrowthOptions {
  GrowParams params;
  std::uint32_t max_bins;
  std::optional<Doubles2> cost;
  std::optional<WeighingOptions> weighing;
  nb::object user;  // a UserCriterion or None; seen by the garbage collector
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
  std::optional<WeighingOptions> weighing_;
};

}  // namespace spinney
