// A formula of a row's target and score, as a program for a register machine whose registers hold a block of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spinney {

struct FormulaStep {
  std::string_view operation;  // NumPy's name
  std::uint32_t to;            // a writable register
  std::uint32_t from[3];       // as many as the operation takes
};

// Registers: the target, the score, one for each constant, then the writable ones.
class Formula {
 public:
  // Throws std::invalid_argument if a step or an output refers to something that does not exist.
  Formula(const std::vector<FormulaStep>& steps, std::vector<double> constants, std::uint32_t n_registers,
          std::vector<std::uint32_t> outputs);

  // Fills outputs.size() arrays of n numbers, one after the other. The result is bit-identical for any number of
  // threads.
  void run(const double* target, const double* score, std::size_t n, int n_threads, double* found) const;
  std::size_t n_outputs() const { return outputs_.size(); }

 private:
  using Kernel = void (*)(const double*, const double*, const double*, std::size_t, double*);
  struct Step {
    Kernel kernel;
    std::uint32_t to, from[3];
  };

  std::vector<Step> steps_;
  std::vector<double> constants_;
  std::uint32_t n_registers_;
  std::vector<std::uint32_t> outputs_;
};

}  // namespace spinney
