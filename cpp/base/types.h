// Types used throughout the engine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney {

using Row = std::uint32_t;  // a row of the caller's table: at most 2^32 - 1 rows

}  // namespace spinney
