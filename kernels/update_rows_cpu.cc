#include "kernels/instruction_set.h"
#include "kernels/update_rows.h"

namespace rowtide {

namespace scalar {
void update_rows(const UpdateRows& op, uint64_t begin, uint64_t end);
}
namespace avx2 {
void update_rows(const UpdateRows& op, uint64_t begin, uint64_t end);
}
namespace avx512 {
void update_rows(const UpdateRows& op, uint64_t begin, uint64_t end);
}

void update_rows_cpu(const UpdateRows& op, uint64_t begin, uint64_t end) {
  ROWTIDE_FOR_THIS_CPU(update_rows)(op, begin, end);
}

}  // namespace rowtide
