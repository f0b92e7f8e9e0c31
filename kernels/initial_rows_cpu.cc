#include <algorithm>

#include "kernels/initial_rows.h"
#include "kernels/instruction_set.h"

namespace rowtide {

namespace scalar {
void initial_row(const InitialRow& op, Key key, std::byte* weights);
}
namespace avx2 {
void initial_row(const InitialRow& op, Key key, std::byte* weights);
}
namespace avx512 {
void initial_row(const InitialRow& op, Key key, std::byte* weights);
}

void initial_row_cpu(const InitialRow& op, Key key, std::byte* weights, std::byte* state) {
  ROWTIDE_FOR_THIS_CPU(initial_row)(op, key, weights);
  std::fill_n(state, op.format.state_bytes(), std::byte{0});
}

}  // namespace rowtide
