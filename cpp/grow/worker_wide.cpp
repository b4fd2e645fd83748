// The workers for several classes or regression targets.
#include "grow/criterion_worker.h"

namespace spinney {

template std::unique_ptr<Worker> make_worker(const Wide<ClassRows>&);
template std::unique_ptr<Worker> make_worker(const Wide<ValueRows>&);

}  // namespace spinney
