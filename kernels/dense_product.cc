#include "kernels/dense_product.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "runtime/base/status.h"

namespace rowtide {
namespace {

// Debian's oneDNN runs on OpenMP, whose number of threads is a property of the calling thread.
// With one it starts no parallel region.  The caller's own setting is put back.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }

 private:
  const int before_;
};

}  // namespace

void dense_product_cpu(const DenseProduct& op) {
  if (op.rows == 0 || op.columns == 0) return;
  const OneThread one_thread;
  const auto size = [](uint64_t n) { return static_cast<dnnl_dim_t>(n); };
  const dnnl_status_t status =
      dnnl_sgemm(op.a_transposed ? 'T' : 'N', op.b_transposed ? 'T' : 'N', size(op.rows),
                 size(op.columns), size(op.inner), 1.0f, op.a, size(op.a_stride), op.b,
                 size(op.b_stride), op.add ? 1.0f : 0.0f, op.c, size(op.c_stride));
  ROWTIDE_CHECK(status == dnnl_success);  // it refuses nothing but broken strides
}

}  // namespace rowtide
