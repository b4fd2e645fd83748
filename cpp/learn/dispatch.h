// Converts names to types, once: everything below this is concrete.
#pragma once

#include "cells/median.h"
#include "cells/user.h"
#include "criterion/scalar.h"
#include "criterion/target.h"
#include "criterion/wide.h"

namespace spinney {

// Calls f with the criterion for the target.
template <class F>
decltype(auto) with_criterion(const Target& target, F&& f) {
  const std::int64_t* weight = target.fixed_weight.empty() ? nullptr : target.fixed_weight.data();
  const std::int64_t* value = target.fixed_value.data();
  if (target.rule == Rule::absolute_error) return f(AbsoluteError(target));
  if (target.rule == Rule::user)
    return f(
        UserSplits({target.input.y, target.input.weight, weight, nullptr, target.input.n_outputs}, *target.input.user));
  if (target.is_scalar()) {
    if (!target.second_class.empty()) return f(Scalar<ByteRows>{{target.second_class.data()}, target.rule});
    if (!target.packed.empty()) return f(Scalar<PackedRows>{{target.packed.data()}, target.rule});
    if (!target.flagged.empty()) return f(Scalar<FlaggedRows>{{target.flagged.data()}, target.rule});
    if (weight == nullptr) return f(Scalar<UnitRows>{{value}, target.rule});
    return f(Scalar<WeightedRows>{{value, weight}, target.rule});
  }
  if (is_class_rule(target.rule))
    return f(Wide<ClassRows>{
        {target.input.codes, weight, target.input.n_outputs, target.class_begin.data()}, target.rule, &target});
  return f(Wide<ValueRows>{{value, weight, target.input.n_outputs}, target.rule, &target});
}

}  // namespace spinney
