#if defined(__x86_64__)
#include "base/parting.h"
#include "cells/kernels.h"
#include "criterion/entropy.h"
#include "criterion/misclassification.h"
#include "criterion/poisson.h"
#include "criterion/squared_error.h"

namespace spinney::avx2 {

#include "cells/kernels_body.h"

}  // namespace spinney::avx2
#endif
