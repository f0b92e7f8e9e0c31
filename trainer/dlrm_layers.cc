#include "trainer/dlrm_layers.h"

#include <cmath>
#include <numbers>

#include "kernels/dense_interaction.h"
#include "kernels/dense_linear.h"
#include "runtime/base/carver.h"
#include "runtime/base/key.h"

namespace rowtide {
namespace {

constexpr uint64_t kLine = 16;  // floats of a cache line

uint64_t rounded(uint64_t n) { return (n + kLine - 1) / kLine * kLine; }

uint64_t add_parameter(DlrmLayers& layers, std::string name, std::vector<uint64_t> shape,
                       double variance) {
  uint64_t size = 1;
  for (uint64_t n : shape) size *= n;
  const uint64_t offset = layers.run;
  layers.parameters.push_back({std::move(name), std::move(shape), offset, size, sqrt(variance)});
  layers.run += rounded(size);
  return offset;
}

std::vector<DlrmLayer> make_mlp(DlrmLayers& layers, const std::string& name, uint32_t in,
                                const std::vector<uint32_t>& widths, bool relu_last) {
  std::vector<DlrmLayer> mlp;
  for (size_t i = 0; i < widths.size(); ++i) {
    const uint32_t out = widths[i];
    const std::string prefix = "dense/" + name + "." + std::to_string(i);
    DlrmLayer layer{.in = in, .out = out, .relu = relu_last || i + 1 < widths.size()};
    layer.weight = add_parameter(layers, prefix + ".weight", {out, in}, 2.0 / (uint64_t{in} + out));
    layer.bias = add_parameter(layers, prefix + ".bias", {out}, 1.0 / out);
    layer.stride = out == 1 ? 1 : rounded(out);
    mlp.push_back(layer);
    in = out;
  }
  return mlp;
}

// REQUIRES: mlp[0].x and x_stride are set.
void lay_mlp(std::vector<DlrmLayer>& mlp, uint64_t samples, Carver& carver) {
  for (DlrmLayer& layer : mlp) {
    layer.y = carver.take<float>(samples * layer.stride);
    layer.dy = carver.take<float>(samples * layer.stride);
  }
  for (size_t i = 1; i < mlp.size(); ++i) {
    mlp[i].x = mlp[i - 1].y;
    mlp[i].x_stride = mlp[i - 1].stride;
  }
}

uint64_t features_of(const DlrmOptions& options) {
  return options.dim + dot_interaction_pairs(uint64_t{options.embeddings} + 1);
}

Status check_widths(const std::string& name, const std::vector<uint32_t>& widths, uint64_t last,
                    const std::string& last_name) {
  if (widths.empty()) return {Code::kInvalid, name + " has no layer"};
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) {
      return {Code::kInvalid, name + ": the width of layer " + std::to_string(i) + " is 0"};
    }
  }
  if (widths.back() == last) return {};
  return {Code::kInvalid, name + " ends in width " + std::to_string(widths.back()) +
                              ", it must end in " + last_name + " " + std::to_string(last)};
}

// Two words of a counter-based hash, by Box and Muller.  In double, so that the last bits of a
// machine's libm rarely reach the float.
double normal(uint64_t key, uint64_t i) {
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  const uint64_t a = mix64(key + (2 * i + 1) * kGolden), b = mix64(key + (2 * i + 2) * kGolden);
  const double u = static_cast<double>((a >> 11) + 1) * 0x1p-53;  // (0, 1]: its log is finite
  const double v = static_cast<double>(b >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace

uint64_t dlrm_blocks(uint64_t samples) { return (samples + kDenseBlock - 1) / kDenseBlock; }

const char* dlrm_state_name(DenseOptimizer optimizer, int index) {
  switch (optimizer) {
    case DenseOptimizer::kSgd:
      return nullptr;
    case DenseOptimizer::kAdagrad:
      return index == 0 ? "adagrad" : nullptr;
    case DenseOptimizer::kAdam:
      return index == 0 ? "adam_m" : "adam_v";
  }
  return nullptr;
}

Status check_dlrm_options(const DlrmOptions& options) {
  if (options.dense_features == 0) return {Code::kInvalid, "dense_features is 0"};
  if (options.dim == 0) return {Code::kInvalid, "dim is 0"};
  if (options.max_samples == 0) return {Code::kInvalid, "max_samples is 0"};
  ROWTIDE_TRY(check_widths("bottom", options.bottom, options.dim, "dim"));
  ROWTIDE_TRY(check_widths("top", options.top, 1, "width"));
  if (features_of(options) > INT32_MAX) {
    return {Code::kInvalid, "embeddings " + std::to_string(options.embeddings) +
                                ": their pairs are too many for the top's first layer"};
  }
  return {};
}

DlrmLayers lay_dlrm(const DlrmOptions& options, std::byte* memory) {
  DlrmLayers layers;
  const uint64_t samples = options.max_samples;
  const uint32_t features = static_cast<uint32_t>(features_of(options));
  layers.bottom = make_mlp(layers, "bottom", options.dense_features, options.bottom, true);
  layers.top = make_mlp(layers, "top", features, options.top, false);

  Carver carver(memory);
  layers.values = carver.take<float>(layers.run);
  if (dlrm_state_name(options.optimizer, 0)) layers.state = carver.take<float>(layers.run);
  if (dlrm_state_name(options.optimizer, 1)) layers.state2 = carver.take<float>(layers.run);
  layers.kept_bytes = carver.used();
  layers.gradients = carver.take<float>(layers.run);

  layers.features_stride = rounded(features);
  layers.features = carver.take<float>(samples * layers.features_stride);
  layers.features_gradient = carver.take<float>(samples * layers.features_stride);
  layers.transposed_stride =
      rounded(dot_interaction_scratch(uint64_t{options.embeddings} + 1, options.dim));
  layers.transposed = carver.take<float>(dlrm_blocks(samples) * layers.transposed_stride);
  layers.bottom[0].x_stride = options.dense_features;
  layers.top[0].x = layers.features;
  layers.top[0].x_stride = layers.features_stride;
  lay_mlp(layers.bottom, samples, carver);
  lay_mlp(layers.top, samples, carver);
  layers.bytes = carver.used();
  return layers;
}

void draw_dlrm_values(DlrmLayers& layers, uint64_t seed) {
  for (size_t t = 0; t < layers.parameters.size(); ++t) {
    const DlrmParameter& parameter = layers.parameters[t];
    const uint64_t key = mix64(seed ^ mix64(t + 1));
    for (uint64_t i = 0; i < parameter.size; ++i) {
      layers.values[parameter.offset + i] =
          static_cast<float>(parameter.deviation * normal(key, i));
    }
  }
}

}  // namespace rowtide
