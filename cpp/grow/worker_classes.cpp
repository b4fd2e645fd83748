// The workers for two classes.
#include "grow/criterion_worker.h"

namespace spinney {

template std::unique_ptr<Worker> make_worker(const Scalar<ByteRows>&);
template std::unique_ptr<Worker> make_worker(const Scalar<PackedRows>&);

}  // namespace spinney
