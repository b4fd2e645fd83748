#if defined(__x86_64__)
#include <algorithm>
#include <cstdint>

#include "predict/shap_tree.h"

namespace spinney::avx512 {

#include "predict/shap_body.h"

}  // namespace spinney::avx512
#endif
