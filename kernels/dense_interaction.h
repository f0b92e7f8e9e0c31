#pragma once
// dense_interaction — pairwise dot products of a sample's vectors, behind its first vector.
//
//     out = [z0, z1·z0, z2·z0, z2·z1, z3·z0, ...]: dim floats, then the strictly lower triangle of
//           Z Zᵀ row by row; Z is (vectors, dim)
//     gradient: dz_i = sum over j != i of g_ij * z_j, dz_0 starts from the gradient of its copy;
//               g_ij = g_ji is the gradient of the pair's dot product
//
// Dots are summed over d ascending from +0, gradients over j ascending, product and sum rounded one
// after the other: the same bits from every implementation, so no tolerance.

#include <cstdint>

namespace rowtide {

constexpr uint64_t dot_interaction_pairs(uint64_t vectors) { return vectors * (vectors - 1) / 2; }

struct DotInteraction {
  const float* first = nullptr;   // (samples, dim) vector 0
  uint64_t first_stride = 0;      // floats between samples, as all strides
  const float* others = nullptr;  // (samples, vectors - 1, dim), no gaps
  float* out = nullptr;           // (samples, dim + pairs)
  uint64_t out_stride = 0;
  float* scratch = nullptr;  // (dot_interaction_scratch(vectors, dim)) of this call alone
  uint64_t samples = 0;
  uint32_t vectors = 0, dim = 0;
};
void dot_interaction_cpu(const DotInteraction& op);

// Floats: Z transposed, and Z Zᵀ, both in strips of at most 16.
constexpr uint64_t dot_interaction_scratch(uint64_t vectors, uint64_t dim) {
  return (vectors + 15) / 16 * 16 * (dim + vectors);
}

struct DotInteractionGradient {
  const float* first = nullptr;  // (samples, dim)
  uint64_t first_stride = 0;
  const float* others = nullptr;    // (samples, vectors - 1, dim)
  const float* gradient = nullptr;  // (samples, dim + pairs)
  uint64_t gradient_stride = 0;
  float* first_gradient = nullptr;  // (samples, dim)
  uint64_t first_gradient_stride = 0;
  float* others_gradient = nullptr;  // (samples, vectors - 1, dim), no gaps
  uint64_t samples = 0;
  uint32_t vectors = 0, dim = 0;
};
void dot_interaction_gradient_cpu(const DotInteractionGradient& op);

}  // namespace rowtide
