// The workers for criteria that read a column as one sequence of rows.
#include "grow/criterion_worker.h"

namespace spinney {

template std::unique_ptr<Worker> make_worker(const AbsoluteError&);
template std::unique_ptr<Worker> make_worker(const UserSplits&);

}  // namespace spinney
