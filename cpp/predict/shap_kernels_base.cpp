#include <algorithm>
#include <cstdint>

#include "predict/shap_tree.h"

namespace spinney::base {

#include "predict/shap_body.h"

}  // namespace spinney::base
