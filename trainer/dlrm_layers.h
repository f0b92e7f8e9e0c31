#pragma once
// dlrm_layers — the weights and activations of a Dlrm, and how they lie in one arena.
//
//     values | optimizer states | gradients | activations and their gradients
//
// Values, each state and gradients are runs of the same shape: a tensor has one offset in all of
// them, so an update or an exchange of gradients is one pass over `run` floats.

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/dlrm.h"

namespace rowtide {

struct DlrmParameter {
  std::string name;             // "dense/bottom.0.weight"
  std::vector<uint64_t> shape;  // (out, in) or (out)
  uint64_t offset = 0;          // floats from the beginning of each run
  uint64_t size = 0;            // floats
  double deviation = 0;         // of the normal distribution that its first values come from
};

struct DlrmLayer {
  uint32_t in = 0, out = 0;
  bool relu = false;
  uint64_t weight = 0, bias = 0;  // offsets
  const float* x = nullptr;       // (samples, in) the layer below, the features, or the caller's
  uint64_t x_stride = 0;
  float* y = nullptr;   // (max_samples, out) after the ReLU
  float* dy = nullptr;  // (max_samples, out) gradient before the ReLU
  uint64_t stride = 0;  // floats between the samples of both
};

struct DlrmLayers {
  std::vector<DlrmParameter> parameters;
  std::vector<DlrmLayer> bottom, top;
  uint64_t run = 0;  // floats
  float *values = nullptr, *state = nullptr, *state2 = nullptr, *gradients = nullptr;
  float *features = nullptr, *features_gradient = nullptr;  // (max_samples, top's input)
  uint64_t features_stride = 0;
  float* transposed = nullptr;  // (blocks, transposed_stride) scratch of the interaction
  uint64_t transposed_stride = 0;
  uint64_t kept_bytes = 0, bytes = 0;  // values and states; all
};

uint64_t dlrm_blocks(uint64_t samples);
const char* dlrm_state_name(DenseOptimizer optimizer, int index);  // "adagrad"; null: has none

// Errors: kInvalid (a width, named).
Status check_dlrm_options(const DlrmOptions& options);
// The layers of valid options over `memory`, zeroed and of `bytes`; null: sizes only.
DlrmLayers lay_dlrm(const DlrmOptions& options, std::byte* memory);

// Draws the first values: normal, with the variances of the DLRM reference (2 / (in + out) for
// weights, 1 / out for biases).  Element i of a tensor is a function of (seed, tensor, i) alone.
void draw_dlrm_values(DlrmLayers& layers, uint64_t seed);

}  // namespace rowtide
