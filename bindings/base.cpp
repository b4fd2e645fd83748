// Threads and interruption.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "arrays.h"
#include "base/cpu.h"
#include "base/log_exp.h"
#include "base/platform.h"
#include "base/pool.h"
#include "base/threads.h"
#include "interrupt.h"
#include "module.h"

namespace nb = nanobind;

namespace spinney {

// Python runs signal handlers on its main thread only. Other threads need not take the GIL to check.
static bool may_see_signals() { return platform::on_first_thread(); }

// Stops the calls of a thread that receives no signals: another thread raises the flag.
struct StopFlag {
  std::shared_ptr<std::atomic<bool>> raised = std::make_shared<std::atomic<bool>>(false);
};

static thread_local std::shared_ptr<std::atomic<bool>> obeyed_flag;

bool python_wants_stop() {
  if (obeyed_flag && obeyed_flag->load(std::memory_order_relaxed)) return true;
  if (!may_see_signals()) return false;
  const nb::gil_scoped_acquire locked;
  return PyErr_CheckSignals() != 0;
}

// Returns whether the interpreter is shutting down. The stable ABI has no such query: there a flag is raised in the
// last step before the shutdown.
#if defined(Py_LIMITED_API)
static std::atomic<bool> interpreter_ends = false;
static bool is_finalizing() { return interpreter_ends.load(std::memory_order_relaxed); }
#elif PY_VERSION_HEX >= 0x030D0000
static bool is_finalizing() { return Py_IsFinalizing() != 0; }
#else
static bool is_finalizing() { return _Py_IsFinalizing() != 0; }
#endif

void sleep_if_finalizing() {
  if (is_finalizing() && !may_see_signals()) platform::sleep_for_ever();
}

static void spin(double seconds, int n_jobs) {
  using Clock = std::chrono::steady_clock;
  if (!(seconds >= 0 && seconds <= 3600)) throw std::invalid_argument("seconds must lie between 0 and 3600.");
  const int n_threads = resolve_threads(n_jobs);
  const auto n_tasks = static_cast<std::size_t>(std::ceil(seconds * 1000)) * static_cast<std::size_t>(n_threads);
  run_interruptible([&](Interrupt& interrupt) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    parallel_for(n_tasks, n_threads, [&](std::size_t, int) {
      interrupt.check();
      const auto task_end = std::min<Clock::time_point>(std::chrono::time_point_cast<Clock::duration>(end),
                                                        Clock::now() + std::chrono::milliseconds(1));
      while (Clock::now() < task_end) {
      }
    });
  });
}

template <double function(double)>
static Array<double> each(const Doubles1& values) {
  std::vector<double> found(values.size());
  std::transform(values.data(), values.data() + values.size(), found.begin(), function);
  return own(std::move(found));
}

}  // namespace spinney

void init_base(nb::module_& m) {
#if defined(Py_LIMITED_API)
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { spinney::interpreter_ends = true; }));
#endif
  m.def(
      "instruction_set", [] { return spinney::name_of(spinney::isa()); },
      "Instruction set of the kernels, fixed at the first use.");
  m.def("available_threads", &spinney::available_threads,
        "Number of threads available by hardware, affinity mask and the CPU quota of the container to this "
        "process.");
  m.def(
      "resolve_threads", [](std::optional<int> n_jobs) { return spinney::resolve_threads(n_jobs.value_or(0)); },
      nb::arg("n_jobs").none() = nb::none(),
      "Number of threads for an estimator's n_jobs. None: SPINNEY_NUM_THREADS, else all available up to\n"
      "OMP_NUM_THREADS; negative: all available but -n_jobs - 1 of them.");
  m.def("log", &spinney::each<spinney::log_of>, nb::arg("values"),
        "Natural logarithm of each number, bit-identical on every machine.");
  m.def("exp", &spinney::each<spinney::exp_of>, nb::arg("values"),
        "Exponential of each number, bit-identical on every machine.");
  using spinney::StopFlag;
  nb::class_<StopFlag>(m, "StopFlag", "Stops the engine's calls on threads that receive no signals.")
      .def(nb::init<>())
      .def(
          "obey", [](const StopFlag& self) { spinney::obeyed_flag = self.raised; },
          "Stop the calls of this thread with a RuntimeError once the flag is raised.")
      .def(
          "request", [](const StopFlag& self) { self.raised->store(true, std::memory_order_relaxed); },
          "Raise the flag.");
  m.def("_spin", &spinney::spin, nb::arg("seconds"), nb::arg("n_jobs"),
        "Keep the pool busy; for tests of interruption and fork.");
}
