// Which instruction set the kernels may use. Results do not depend on it.
#pragma once

namespace spinney {

enum class Isa { base, avx2, avx512 };

// The best the processor offers; the environment variable SPINNEY_ISA (base, avx2, avx512) can only lower it. Throws
// std::invalid_argument if it says anything else.
Isa isa();

const char* name_of(Isa isa);

}  // namespace spinney
