// Which instruction set the kernels may use. Results do not depend on it.
//
// Kernels live in files that end in _body.cpp. The build compiles each of these once per instruction set, with SPINNEY_ISA
// defined as that set's name, and each copy defines one function that takes the set's tag:
//
//   const Kernels& kernels_of(OfIsa<Isa::SPINNEY_ISA>) { … }             in kernels_body.cpp
//   by_isa([](auto isa) -> const Kernels& { return kernels_of(isa); })   where one of them is chosen
//
// Everything else in such a file, and in the headers it includes, has internal linkage or is always inlined: the linker
// must never use a function compiled for wide vectors in place of the plain one. tools/check_kernel_objects.cmake
// checks this.
#pragma once

namespace spinney {

enum class Isa { base, avx2, avx512 };

// The best instruction set of the processor; the environment variable SPINNEY_ISA (base, avx2, avx512) can only lower
// it. Throws std::invalid_argument for any other value of the variable, on any processor.
Isa isa();

const char* name_of(Isa isa);

template <Isa>
struct OfIsa {};

// Calls f(OfIsa<…>) for the instruction set in use.
template <class F>
decltype(auto) by_isa(F&& f) {
  const Isa chosen = isa();
#if defined(__x86_64__)
  if (chosen == Isa::avx512) return f(OfIsa<Isa::avx512>{});
  if (chosen == Isa::avx2) return f(OfIsa<Isa::avx2>{});
#endif
  static_cast<void>(chosen);  // other processors have one set, but an unknown value is refused all the same
  return f(OfIsa<Isa::base>{});
}

}  // namespace spinney
