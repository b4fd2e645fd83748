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

// True if a signal handler has raised, say, KeyboardInterrupt; the exception is then pending on this thread.
// Call it without the GIL.
bool python_wants_stop();

// Does not return while the interpreter shuts down: taking the GIL would then end the thread in the middle of
// a C++ call. Only daemon threads come here that late, and the end of the process takes them along.
void sleep_if_finalizing();

// f(interrupt) without the GIL, in a way that the user can stop. Where a signal handler has raised, its
// exception wins over any other outcome. The result must not be a Python object, because f may not make one.
template <class F>
auto run_interruptible(F&& f) {
  using Result = std::invoke_result_t<F, Interrupt&>;
  static_assert(!std::is_reference_v<Result>, "the result would refer to what may be gone");
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
