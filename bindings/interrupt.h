// Ctrl-C for the engine: every long call that Python makes runs through run_interruptible.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/interrupt.h"

namespace spinney {

// Returns whether a signal handler has raised, for example KeyboardInterrupt; the exception is then pending on this
// thread. Call it without the GIL.
bool python_wants_stop();

// Does not return during interpreter shutdown: taking the GIL would end the thread in the middle of a C++ call. Only
// daemon threads get here that late, and the end of the process ends them.
void sleep_if_finalizing();

// Calls f(interrupt) without the GIL, so that the user can interrupt it. If a signal handler has raised, its exception
// takes precedence. The result must not be a Python object, because f runs without the GIL.
template <class F>
auto run_interruptible(F&& f) {
  using Result = std::invoke_result_t<F, Interrupt&>;
  static_assert(!std::is_reference_v<Result>, "the result must not be a reference");
  std::conditional_t<std::is_void_v<Result>, std::monostate, std::optional<Result>> result;
  std::exception_ptr failure;
  {
    const nanobind::gil_scoped_release unlocked;
    try {
      Interrupt interrupt(python_wants_stop);
      if constexpr (std::is_void_v<Result>)
        std::forward<F>(f)(interrupt);
      else
        result.emplace(std::forward<F>(f)(interrupt));
    } catch (...) {
      failure = std::current_exception();
    }
    sleep_if_finalizing();
  }
  if (PyErr_Occurred()) throw nanobind::python_error();
  if (failure) std::rethrow_exception(failure);
  if constexpr (!std::is_void_v<Result>) return std::move(*result);
}

}  // namespace spinney
