#pragma once
// dense_lanes — the loops of the dense ops that are no matrix product, for one instruction set.
//
// dense_lanes.cc is compiled once for each set and fills one table in the namespace of its name.

#include "kernels/dense_interaction.h"
#include "kernels/dense_linear.h"
#include "kernels/dense_update.h"
#include "kernels/instruction_set.h"

namespace rowtide {

struct DenseLanes {
  // y += bias, then ReLU if asked: what follows the product of a forward.
  void (*add_bias)(const LinearForward& op);
  void (*relu_gradient)(const ReluGradient& op);
  // db (+)= the sum of `samples` rows of dy, from +0.
  void (*add_rows)(const float* dy, uint64_t dy_stride, uint64_t samples, uint32_t out, float* db,
                   bool add);
  void (*dot_interaction)(const DotInteraction& op);
  void (*dot_interaction_gradient)(const DotInteractionGradient& op);
  void (*dense_update)(const DenseUpdate& op);
};

namespace scalar {
extern const DenseLanes dense_lanes;
}
namespace avx2 {
extern const DenseLanes dense_lanes;
}
namespace avx512 {
extern const DenseLanes dense_lanes;
}

inline const DenseLanes& dense_lanes_here() { return ROWTIDE_FOR_THIS_CPU(dense_lanes); }

}  // namespace rowtide
