// The workers for two classes, and for one regression target.
#include "grow/criterion_worker.h"

namespace spinney {

template std::unique_ptr<Worker> make_worker(const Scalar<ByteRows>&);
template std::unique_ptr<Worker> make_worker(const Scalar<PackedRows>&);
template std::unique_ptr<Worker> make_worker(const Scalar<FlaggedRows>&);
template std::unique_ptr<Worker> make_worker(const Scalar<UnitRows>&);
template std::unique_ptr<Worker> make_worker(const Scalar<WeightedRows>&);

}  // namespace spinney
