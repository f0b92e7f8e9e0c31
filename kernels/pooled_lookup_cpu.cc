#include "kernels/instruction_set.h"
#include "kernels/pooled_lookup.h"

namespace rowtide {

namespace scalar {
void pooled_lookup(const PooledLookup& op, uint64_t begin, uint64_t end);
void sequence_lookup(const PooledLookup& op, uint64_t begin, uint64_t end);
}  // namespace scalar
namespace avx2 {
void pooled_lookup(const PooledLookup& op, uint64_t begin, uint64_t end);
void sequence_lookup(const PooledLookup& op, uint64_t begin, uint64_t end);
}  // namespace avx2
namespace avx512 {
void pooled_lookup(const PooledLookup& op, uint64_t begin, uint64_t end);
void sequence_lookup(const PooledLookup& op, uint64_t begin, uint64_t end);
}  // namespace avx512

void pooled_lookup_cpu(const PooledLookup& op, uint64_t begin, uint64_t end) {
  ROWTIDE_FOR_THIS_CPU(pooled_lookup)(op, begin, end);
}

void sequence_lookup_cpu(const PooledLookup& op, uint64_t begin, uint64_t end) {
  ROWTIDE_FOR_THIS_CPU(sequence_lookup)(op, begin, end);
}

}  // namespace rowtide
