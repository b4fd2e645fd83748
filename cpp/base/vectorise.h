// A vectorisation hint with one name for gcc and clang.
#pragma once

// Put it before a loop whose iterations do not write to memory of other iterations: it may then be vectorised without a
// proof. The result is the same with or without the hint.
#if defined(__clang__)
#define SPINNEY_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define SPINNEY_IVDEP _Pragma("GCC ivdep")
#endif
