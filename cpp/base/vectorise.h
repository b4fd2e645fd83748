// A hint to the compiler, the same word for gcc and clang.
#pragma once

// Before a loop whose rounds touch no memory that another round writes, so that it may be vectorised without proving it.
// The result is the same with or without.
#if defined(__clang__)
#define SPINNEY_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define SPINNEY_IVDEP _Pragma("GCC ivdep")
#endif
