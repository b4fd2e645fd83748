// A formula of two numbers of a row, its target and its score, as a program of a small machine whose registers hold a block
// of rows each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spinney {

struct FormulaStep {
  std::string_view operation;  // as NumPy calls it
  std::uint32_t to;            // a register of the program's own
  std::uint32_t from[3];       // as many as the operation takes
};

// Registers: the target, the score, one for each constant, then the program's own.
class Formula {
 public:
  // Throws std::invalid_argument if a step or an output names what does not exist.
  Formula(const std::vector<FormulaStep>& steps, std::vector<double> constants, std::uint32_t n_registers,
          std::vector<std::uint32_t> outputs);

  // Fills outputs.size() arrays of n numbers, one after the other. The same bits for any number of threads.
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
