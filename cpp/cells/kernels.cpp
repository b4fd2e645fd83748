#include "cells/kernels.h"

namespace spinney {

const Kernels& kernels() {
  return by_isa([](auto isa) -> const Kernels& { return kernels_of(isa); });
}

}  // namespace spinney
