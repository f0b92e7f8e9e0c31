#include "kernels/instruction_set.h"
#include "kernels/weight_gradient.h"

namespace rowtide {

namespace scalar {
void weight_gradient(const WeightGradient& op, uint64_t begin, uint64_t end);
}
namespace avx2 {
void weight_gradient(const WeightGradient& op, uint64_t begin, uint64_t end);
}
namespace avx512 {
void weight_gradient(const WeightGradient& op, uint64_t begin, uint64_t end);
}

void weight_gradient_cpu(const WeightGradient& op, uint64_t begin, uint64_t end) {
  ROWTIDE_FOR_THIS_CPU(weight_gradient)(op, begin, end);
}

}  // namespace rowtide
