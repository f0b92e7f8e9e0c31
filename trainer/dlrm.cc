// One pass of forward or backward takes a block of samples through the whole network, so that its
// activations stay in the cache of one core; weight gradients follow, a task for each tile of a
// layer's outputs.  Both grids depend on the shapes alone, never on the number of threads.

#include "trainer/dlrm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/dense_interaction.h"
#include "kernels/dense_linear.h"
#include "kernels/dense_loss.h"
#include "kernels/dense_update.h"
#include "runtime/base/host_arena.h"
#include "trainer/dlrm_layers.h"

namespace rowtide {
namespace {

constexpr uint32_t kTileOutputs = 128;       // of a weight gradient: near a whole layer's speed
constexpr uint64_t kUpdateFloats = 1 << 14;  // of one update task: some 10 us

struct Block {
  uint64_t index, first, samples;
};

struct Tile {
  const DlrmLayer* layer;
  uint32_t first, outputs;
};

OptimizerKind kind_of(DenseOptimizer optimizer) {
  switch (optimizer) {
    case DenseOptimizer::kSgd:
      return OptimizerKind::kSgd;
    case DenseOptimizer::kAdagrad:
      return OptimizerKind::kAdagrad;
    case DenseOptimizer::kAdam:
      break;
  }
  return OptimizerKind::kAdam;
}

class CpuDlrm : public Dlrm {
 public:
  CpuDlrm(const DlrmOptions& options, Parallel& parallel, HostArena arena)
      : options_(options),
        parallel_(parallel),
        arena_(std::move(arena)),
        layers_(lay_dlrm(options, arena_.bytes())),
        losses_(dlrm_blocks(options.max_samples)) {
    add_tiles(layers_.top);
    add_tiles(layers_.bottom);
#ifdef ROWTIDE_DEBUG
    std::fill(layers_.gradients, layers_.values + layers_.bytes / sizeof(float),
              std::numeric_limits<float>::quiet_NaN());
#endif
    draw_dlrm_values(layers_, options.seed);
  }

  void forward(uint64_t samples, const float* dense, const float* pooled, float* logits) override {
    ROWTIDE_CHECK(samples <= options_.max_samples);
    samples_ = samples;
    pooled_ = pooled;
    layers_.bottom[0].x = dense;
    for_each_block([&](const Block& block) { forward_block(block, logits); });
  }

  double backward(const float* labels, float* pooled_gradient) override {
    for_each_block([&](const Block& block) { backward_block(block, labels, pooled_gradient); });
    parallel_.run(tiles_.size(), [&](size_t i) { weight_gradient(tiles_[i]); });
    double sum = 0;
    for (uint64_t b = 0; b < dlrm_blocks(samples_); ++b) sum += losses_[b];
    return samples_ == 0 ? 0 : sum / static_cast<double>(samples_);
  }

  void update(float learning_rate) override;
  std::vector<DenseTensor> tensors() override;
  std::vector<DenseTensor> gradients() override;
  uint64_t steps() const override { return steps_; }
  void set_steps(uint64_t steps) override { steps_ = steps; }

 private:
  void add_tiles(const std::vector<DlrmLayer>& mlp) {
    for (const DlrmLayer& layer : mlp) {
      for (uint32_t first = 0; first < layer.out; first += kTileOutputs) {
        tiles_.push_back({&layer, first, std::min(kTileOutputs, layer.out - first)});
      }
    }
  }

  template <typename Task>
  void for_each_block(Task task) {
    parallel_.run(dlrm_blocks(samples_), [&](size_t i) {
      const uint64_t first = i * kDenseBlock;
      task(Block{i, first, std::min(kDenseBlock, samples_ - first)});
    });
  }

  void forward_mlp(const std::vector<DlrmLayer>& mlp, const Block& block) const;
  void forward_block(const Block& block, float* logits) const;
  void backward_mlp(const std::vector<DlrmLayer>& mlp, const Block& block) const;
  void input_gradient(const DlrmLayer& layer, const Block& block, const float* activation,
                      float* dx) const;
  void backward_block(const Block& block, const float* labels, float* pooled_gradient);
  void weight_gradient(const Tile& tile) const;
  DenseTensor tensor(const DlrmParameter& parameter, const char* suffix, float* run) const;

  const DlrmOptions options_;
  Parallel& parallel_;
  HostArena arena_;
  DlrmLayers layers_;
  std::vector<Tile> tiles_;
  std::vector<double> losses_;  // (blocks)
  uint64_t samples_ = 0;        // of the last forward
  const float* pooled_ = nullptr;
  uint64_t steps_ = 0;
};

void CpuDlrm::forward_mlp(const std::vector<DlrmLayer>& mlp, const Block& block) const {
  for (const DlrmLayer& layer : mlp) {
    linear_forward_cpu({.x = layer.x + block.first * layer.x_stride,
                        .x_stride = layer.x_stride,
                        .weight = layers_.values + layer.weight,
                        .bias = layers_.values + layer.bias,
                        .y = layer.y + block.first * layer.stride,
                        .y_stride = layer.stride,
                        .samples = block.samples,
                        .in = layer.in,
                        .out = layer.out,
                        .relu = layer.relu});
  }
}

void CpuDlrm::forward_block(const Block& block, float* logits) const {
  forward_mlp(layers_.bottom, block);
  const DlrmLayer& bottom = layers_.bottom.back();
  dot_interaction_cpu({.first = bottom.y + block.first * bottom.stride,
                       .first_stride = bottom.stride,
                       .others = pooled_ + block.first * options_.embeddings * options_.dim,
                       .out = layers_.features + block.first * layers_.features_stride,
                       .out_stride = layers_.features_stride,
                       .scratch = layers_.transposed + block.index * layers_.transposed_stride,
                       .samples = block.samples,
                       .vectors = options_.embeddings + 1,
                       .dim = options_.dim});
  forward_mlp(layers_.top, block);
  std::copy_n(layers_.top.back().y + block.first, block.samples, logits + block.first);
}

void CpuDlrm::input_gradient(const DlrmLayer& layer, const Block& block, const float* activation,
                             float* dx) const {
  const uint64_t at = block.first * layer.x_stride;
  linear_input_gradient_cpu({.dy = layer.dy + block.first * layer.stride,
                             .dy_stride = layer.stride,
                             .weight = layers_.values + layer.weight,
                             .activation = activation == nullptr ? nullptr : activation + at,
                             .activation_stride = layer.x_stride,
                             .dx = dx + at,
                             .dx_stride = layer.x_stride,
                             .samples = block.samples,
                             .in = layer.in,
                             .out = layer.out});
}

void CpuDlrm::backward_mlp(const std::vector<DlrmLayer>& mlp, const Block& block) const {
  for (size_t i = mlp.size(); i-- > 1;) {
    input_gradient(mlp[i], block, mlp[i - 1].y, mlp[i - 1].dy);
  }
}

void CpuDlrm::backward_block(const Block& block, const float* labels, float* pooled_gradient) {
  const DlrmLayer& last = layers_.top.back();
  losses_[block.index] = bce_with_logits_cpu({.logits = last.y + block.first,
                                              .labels = labels + block.first,
                                              .gradient = last.dy + block.first,
                                              .samples = block.samples,
                                              .batch = samples_});
  backward_mlp(layers_.top, block);
  input_gradient(layers_.top[0], block, nullptr, layers_.features_gradient);
  const DlrmLayer& bottom = layers_.bottom.back();
  const float* y = bottom.y + block.first * bottom.stride;
  float* dy = bottom.dy + block.first * bottom.stride;
  const uint64_t pooled = block.first * options_.embeddings * options_.dim;
  dot_interaction_gradient_cpu(
      {.first = y,
       .first_stride = bottom.stride,
       .others = pooled_ + pooled,
       .gradient = layers_.features_gradient + block.first * layers_.features_stride,
       .gradient_stride = layers_.features_stride,
       .first_gradient = dy,
       .first_gradient_stride = bottom.stride,
       .others_gradient = pooled_gradient + pooled,
       .samples = block.samples,
       .vectors = options_.embeddings + 1,
       .dim = options_.dim});
  relu_gradient_cpu({y, bottom.stride, dy, bottom.stride, block.samples, bottom.out});
  backward_mlp(layers_.bottom, block);
}

void CpuDlrm::weight_gradient(const Tile& tile) const {
  const DlrmLayer& layer = *tile.layer;
  linear_weight_gradient_cpu(
      {.dy = layer.dy + tile.first,
       .dy_stride = layer.stride,
       .x = layer.x,
       .x_stride = layer.x_stride,
       .dw = layers_.gradients + layer.weight + uint64_t{tile.first} * layer.in,
       .db = layers_.gradients + layer.bias + tile.first,
       .samples = samples_,
       .in = layer.in,
       .out = tile.outputs});
}

void CpuDlrm::update(float learning_rate) {
  ++steps_;
  const auto correction = [this](float beta) {
    return static_cast<float>(1 - std::pow(double{beta}, static_cast<double>(steps_)));
  };
  const OptimizerStep step = {.learning_rate = learning_rate,
                              .eps = options_.eps,
                              .beta1 = options_.beta1,
                              .beta2 = options_.beta2,
                              .correction1 = correction(options_.beta1),
                              .correction2 = correction(options_.beta2),
                              .weight_decay = options_.weight_decay,
                              .decoupled = options_.decoupled};
  const auto at = [](float* run, uint64_t first) { return run == nullptr ? run : run + first; };
  parallel_.run((layers_.run + kUpdateFloats - 1) / kUpdateFloats, [&](size_t i) {
    const uint64_t first = i * kUpdateFloats;
    dense_update_cpu({.optimizer = kind_of(options_.optimizer),
                      .step = step,
                      .weight = layers_.values + first,
                      .gradient = layers_.gradients + first,
                      .state = at(layers_.state, first),
                      .state2 = at(layers_.state2, first),
                      .n = std::min(kUpdateFloats, layers_.run - first)});
  });
}

DenseTensor CpuDlrm::tensor(const DlrmParameter& parameter, const char* suffix, float* run) const {
  const std::string name = suffix == nullptr ? parameter.name : parameter.name + "." + suffix;
  return {name, parameter.shape, {run + parameter.offset, parameter.size}};
}

std::vector<DenseTensor> CpuDlrm::tensors() {
  std::vector<DenseTensor> all;
  for (const DlrmParameter& parameter : layers_.parameters) {
    all.push_back(tensor(parameter, nullptr, layers_.values));
    float* states[] = {layers_.state, layers_.state2};
    for (int i : {0, 1}) {
      const char* name = dlrm_state_name(options_.optimizer, i);
      if (name != nullptr) all.push_back(tensor(parameter, name, states[i]));
    }
  }
  return all;
}

std::vector<DenseTensor> CpuDlrm::gradients() {
  std::vector<DenseTensor> all;
  for (const DlrmParameter& parameter : layers_.parameters) {
    all.push_back(tensor(parameter, "gradient", layers_.gradients));
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Dlrm>> Dlrm::create(const DlrmOptions& options, Parallel& parallel) {
  ROWTIDE_TRY(check_dlrm_options(options));
  Result<HostArena> arena = HostArena::reserve(predict_bytes(options), "the dense part");
  if (!arena.ok()) return arena.status();
  return std::unique_ptr<Dlrm>(
      std::make_unique<CpuDlrm>(options, parallel, std::move(arena).value()));
}

uint64_t Dlrm::predict_bytes(const DlrmOptions& options) {
  return check_dlrm_options(options).ok() ? lay_dlrm(options, nullptr).bytes : 0;
}

uint64_t Dlrm::predict_tensor_bytes(const DlrmOptions& options) {
  return check_dlrm_options(options).ok() ? lay_dlrm(options, nullptr).kept_bytes : 0;
}

}  // namespace rowtide
