#pragma once
// Dlrm — the dense part of a deep learning recommendation model (Naumov et al., arXiv 1906.00091).
//
// A bottom MLP turns the dense features into a vector of the embedding width; the pairwise dot
// products of that vector and of all pooled embeddings (strictly lower triangle, row by row, vector
// 0 the bottom's), behind the bottom's output, go through the top MLP to one logit.  ReLU between
// layers and after the bottom's last; binary cross-entropy with logits, mean over the batch.
//
// It knows nothing of tables: pooled embeddings come in, their gradient goes out.
// No result depends on the number of threads.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/parallel.h"
#include "runtime/base/status.h"

namespace rowtide {

enum class DenseOptimizer { kSgd, kAdagrad, kAdam };

struct DlrmOptions {
  uint32_t dense_features = 13;
  uint32_t embeddings = 26;                           // pooled vectors of a sample
  uint32_t dim = 16;                                  // width of each, and of the bottom's output
  std::vector<uint32_t> bottom = {512, 256, 64, 16};  // widths; the last must be dim
  std::vector<uint32_t> top = {512, 256, 1};          // widths; the last must be 1
  uint64_t max_samples = 2048;
  DenseOptimizer optimizer = DenseOptimizer::kSgd;
  float eps = 1e-8f, beta1 = 0.9f, beta2 = 0.999f, weight_decay = 0;
  bool decoupled = false;
  uint64_t seed = 1;
};

// A dense tensor as commits keep it: float32, named "dense/bottom.0.weight", "dense/top.1.bias",
// "dense/top.1.weight.adagrad", ...
struct DenseTensor {
  std::string name;
  std::vector<uint64_t> shape;
  std::span<float> values;
};

class Dlrm {
 public:
  // Errors: kInvalid (widths, named), kNoSpace (memory).  `parallel` must outlive it.
  static Result<std::unique_ptr<Dlrm>> create(const DlrmOptions& options, Parallel& parallel);
  virtual ~Dlrm() = default;

  // Logits of a batch: dense is (samples, dense_features), pooled (samples, embeddings * dim).
  // REQUIRES: samples <= max_samples.  Memory: dense and pooled stay unchanged until backward.
  virtual void forward(uint64_t samples, const float* dense, const float* pooled,
                       float* logits) = 0;
  // The mean loss of the last forward against the labels, the gradient of the pooled embeddings,
  // and the gradients of all weights, kept for update().
  virtual double backward(const float* labels, float* pooled_gradient) = 0;
  // One optimizer step with the gradients of the last backward.
  virtual void update(float learning_rate) = 0;

  // All weights, biases and optimizer states, in a fixed order; values may be overwritten (resume).
  virtual std::vector<DenseTensor> tensors() = 0;
  virtual std::vector<DenseTensor> gradients() = 0;  // for checks
  virtual uint64_t steps() const = 0;                // updates done; Adam's t
  virtual void set_steps(uint64_t steps) = 0;
  // Bytes that it holds for these options, and those of them that tensors() names, for plans.
  static uint64_t predict_bytes(const DlrmOptions& options);
  static uint64_t predict_tensor_bytes(const DlrmOptions& options);
};

}  // namespace rowtide
