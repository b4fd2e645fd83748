// A user-defined criterion: any function of a node's rows, in any language.
//
// The engine calls evaluate() for every node, and split() or split_groups() for every column of every node it may
// split. The order of the rows depends on the data only, so the model does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace spinney {

struct Target;
struct Summary;

class UserCriterion {
 public:
  struct Rows {
    const double* y;       // n x n_columns
    const double* weight;  // n, all positive
    std::size_t n;
  };

  UserCriterion(std::size_t columns, std::size_t values) : n_columns(columns), n_values(values) {}
  virtual ~UserCriterion() = default;
  UserCriterion(const UserCriterion&) = delete;
  UserCriterion& operator=(const UserCriterion&) = delete;

  // The risk of all rows together; writes n_values numbers to `value`.
  virtual double evaluate(const Rows& rows, double* value) const = 0;

  // The goodness of a cut after each of the first n - 1 rows. Rows are sorted by x; missing (NaN) values are last or
  // first. x is null unless wants_x().
  virtual void split(const Rows& rows, const double* x, double* goodness) const = 0;

  // Rows are sorted by group[i] in [0, n_groups). Writes an order of the groups and the goodness of each cut in that
  // order. Returns false and writes nothing if the engine should sort groups by their first value and call split().
  virtual bool split_groups(const Rows&, const double* /*group*/, std::size_t /*n_groups*/, std::uint32_t* /*order*/,
                            double* /*goodness*/) const {
    return false;
  }

  virtual bool wants_x() const { return false; }
  virtual bool wants_groups() const { return wants_x(); }  // whether split_groups reads `group`
  virtual bool runs_in_parallel() const { return true; }

  const std::size_t n_columns, n_values;
};

// Two functions with C linkage.
class CompiledCriterion final : public UserCriterion {
 public:
  using Evaluate = double (*)(const double* y, const double* weight, std::intptr_t n, double* value, void* user_data);
  using Split = void (*)(const double* y, const double* weight, std::intptr_t n, double* goodness, void* user_data);

  CompiledCriterion(Evaluate evaluate, void* evaluate_data, Split split, void* split_data, std::size_t columns,
                    std::size_t values)
      : UserCriterion(columns, values),
        evaluate_(evaluate),
        split_(split),
        evaluate_data_(evaluate_data),
        split_data_(split_data) {}

  double evaluate(const Rows& rows, double* value) const override {
    return evaluate_(rows.y, rows.weight, static_cast<std::intptr_t>(rows.n), value, evaluate_data_);
  }
  void split(const Rows& rows, const double*, double* goodness) const override {
    split_(rows.y, rows.weight, static_cast<std::intptr_t>(rows.n), goodness, split_data_);
  }

 private:
  Evaluate evaluate_;
  Split split_;
  void *evaluate_data_, *split_data_;
};

// The result of the criterion for a node. Throws std::invalid_argument unless it is a valid risk and finite values.
Summary summarise_user(const Target& target, std::span<const Row> rows, double* value);

}  // namespace spinney
