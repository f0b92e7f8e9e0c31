#include "bench/dense_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "kernels/dense_linear.h"
#include "kernels/dense_product.h"
#include "kernels/instruction_set.h"
#include "runtime/base/carver.h"
#include "runtime/base/host_arena.h"
#include "trainer/dlrm.h"

namespace rowtide {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  DlrmOptions model;
  std::string name = "kaggle";
  int threads = 0;
  double seconds = 5;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  options.model.optimizer = DenseOptimizer::kAdagrad;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--model" && (value == "kaggle" || value == "mlperf")) {
      options.name = value;
    } else if (flag == "--batch" && std::atoll(value.c_str()) > 0) {
      options.model.max_samples = std::strtoull(value.c_str(), nullptr, 10);
    } else if (flag == "--threads") {
      options.threads = std::atoi(value.c_str());
    } else if (flag == "--seconds" && std::atof(value.c_str()) > 0) {
      options.seconds = std::atof(value.c_str());
    } else if (flag == "--optimizer" && (value == "sgd" || value == "adagrad" || value == "adam")) {
      options.model.optimizer = value == "sgd"       ? DenseOptimizer::kSgd
                                : value == "adagrad" ? DenseOptimizer::kAdagrad
                                                     : DenseOptimizer::kAdam;
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0) return std::nullopt;
  if (options.name == "mlperf") {
    options.model.dim = 128;
    options.model.bottom = {512, 256, 128};
    options.model.top = {1024, 1024, 512, 256, 1};
  }
  return options;
}

std::vector<float> floats(uint64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
  std::vector<float> values(n);
  for (float& v : values) v = uniform(random);
  return values;
}

// The products of one step and nothing else: each layer forward and both backwards (not the input
// gradient of the first), block by block as the step takes them, a layer's y being the next one's
// x.
class ProductsAlone {
 public:
  ProductsAlone(const DlrmOptions& model, Parallel& parallel)
      : batch_(model.max_samples), parallel_(parallel) {
    add_chain(model.dense_features, model.bottom, false);
    const uint32_t vectors = model.embeddings + 1;
    add_chain(model.dim + vectors * (vectors - 1) / 2, model.top, true);
    arena_ = HostArena::reserve(lay(nullptr), "the products alone").value();
    lay(arena_.bytes());
  }

  void run() {
    const uint64_t blocks = (batch_ + kDenseBlock - 1) / kDenseBlock;
    parallel_.run(blocks, [&](size_t b) {
      for (Layer& layer : layers_) forward(layer, b * kDenseBlock);
    });
    parallel_.run(blocks, [&](size_t b) {
      for (size_t l = layers_.size(); l-- > 0;) input_gradient(layers_[l], b * kDenseBlock);
    });
    parallel_.run(tiles_.size(), [&](size_t t) { weight_gradient(tiles_[t]); });
  }

 private:
  struct Layer {
    uint64_t in, out;
    bool input_gradient;
    float *x, *y, *dx, *dy, *w, *dw;
  };
  struct Tile {
    size_t layer;
    uint64_t first, outputs;
  };

  void add_chain(uint64_t in, const std::vector<uint32_t>& widths, bool input_gradient) {
    for (uint64_t out : widths) {
      for (uint64_t first = 0; first < out; first += 128) {
        tiles_.push_back({layers_.size(), first, std::min<uint64_t>(128, out - first)});
      }
      layers_.push_back({.in = in, .out = out, .input_gradient = input_gradient});
      in = out;
      input_gradient = true;
    }
  }

  // A layer's y is the next one's x, or unused if the next one begins a chain.
  uint64_t lay(std::byte* memory) {
    Carver carver(memory);
    const auto filled = [&](uint64_t n) {
      float* array = carver.take<float>(n);
      for (uint64_t i = 0; array != nullptr && i < n; ++i) array[i] = 0.01f * (i % 7) - 0.03f;
      return array;
    };
    for (size_t l = 0; l < layers_.size(); ++l) {
      Layer& layer = layers_[l];
      const bool chained = l > 0 && layers_[l - 1].out == layer.in;
      layer.x = chained ? layers_[l - 1].y : filled(batch_ * layer.in);
      layer.dx = chained ? layers_[l - 1].dy : filled(batch_ * layer.in);
      layer.y = filled(batch_ * layer.out);
      layer.dy = filled(batch_ * layer.out);
      layer.w = filled(layer.in * layer.out);
      layer.dw = filled(layer.in * layer.out);
    }
    return carver.used();
  }

  uint64_t samples(uint64_t first) const { return std::min(kDenseBlock, batch_ - first); }
  void forward(Layer& l, uint64_t first) {
    dense_product_cpu({l.x + first * l.in, l.in, false, l.w, l.in, true, l.y + first * l.out, l.out,
                       samples(first), l.out, l.in});
  }
  void input_gradient(Layer& l, uint64_t first) {
    if (!l.input_gradient) return;
    dense_product_cpu({l.dy + first * l.out, l.out, false, l.w, l.in, false, l.dx + first * l.in,
                       l.in, samples(first), l.in, l.out});
  }
  void weight_gradient(const Tile& tile) {
    Layer& l = layers_[tile.layer];
    for (uint64_t s = 0; s < batch_; s += kDenseBlock) {
      dense_product_cpu({l.dy + s * l.out + tile.first, l.out, true, l.x + s * l.in, l.in, false,
                         l.dw + tile.first * l.in, l.in, tile.outputs, l.in, samples(s), s > 0});
    }
  }

  uint64_t batch_;
  Parallel& parallel_;
  std::vector<Layer> layers_;
  HostArena arena_;
  std::vector<Tile> tiles_;
};

struct Rate {
  double median = 0, spread = 0;
};
Rate rate_of(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  const auto at = [&](double q) { return rates[static_cast<size_t>(q * (rates.size() - 1))]; };
  return {at(0.5), (at(0.9) - at(0.1)) / at(0.5)};
}

class Bench {
 public:
  Bench(const Options& options, Parallel& parallel, Dlrm& dlrm)
      : options_(options),
        batch_(options.model.max_samples),
        dlrm_(dlrm),
        products_(options.model, parallel),
        dense_(floats(batch_ * options.model.dense_features, 3)),
        pooled_(floats(batch_ * options.model.embeddings * options.model.dim, 4)),
        labels_(floats(batch_, 5)),
        logits_(batch_),
        pooled_gradient_(pooled_.size()) {
    for (float& label : labels_) label = label > 0.25f;
  }

  void run() {
    std::map<std::string, std::vector<double>> rates;
    const auto timed = [&](const std::string& name, auto&& work) {
      const auto begin = Clock::now();
      work();
      const std::chrono::duration<double> took = Clock::now() - begin;
      rates[name].push_back(static_cast<double>(batch_) / took.count());
    };
    step();
    products_.run();
    const auto begin = Clock::now();
    do {
      timed("step", [&] { step(); });
      timed("products", [&] { products_.run(); });
      timed("forward", [&] { forward(); });
      timed("backward", [&] { dlrm_.backward(labels_.data(), pooled_gradient_.data()); });
      timed("update", [&] { dlrm_.update(0.01f); });
    } while (Clock::now() - begin < std::chrono::duration<double>(options_.seconds));
    print(rates);
  }

 private:
  void forward() { dlrm_.forward(batch_, dense_.data(), pooled_.data(), logits_.data()); }
  void step() {
    forward();
    dlrm_.backward(labels_.data(), pooled_gradient_.data());
    dlrm_.update(0.01f);
  }
  void print(const std::map<std::string, std::vector<double>>& rates) const;

  const Options& options_;
  const uint64_t batch_;
  Dlrm& dlrm_;
  ProductsAlone products_;
  std::vector<float> dense_, pooled_, labels_, logits_, pooled_gradient_;
};

void Bench::print(const std::map<std::string, std::vector<double>>& rates) const {
  const Rate step = rate_of(rates.at("step")), products = rate_of(rates.at("products"));
  std::printf("{\"bench\": \"dense\", \"model\": \"%s\", \"batch\": %llu, \"threads\": %d, ",
              options_.name.c_str(), static_cast<unsigned long long>(batch_), options_.threads);
  std::printf("\"instruction_set\": \"%s\", \"repeats\": %zu, ",
              instruction_set_name(instruction_set()), rates.at("step").size());
  std::printf("\"samples_per_s\": %.0f, \"spread\": %.3f, ", step.median, step.spread);
  std::printf("\"products_samples_per_s\": %.0f, \"products_spread\": %.3f, ", products.median,
              products.spread);
  std::printf("\"of_products\": %.3f", step.median / products.median);
  for (const char* part : {"forward", "backward", "update"}) {
    std::printf(", \"%s_us\": %.0f", part, 1e6 * batch_ / rate_of(rates.at(part)).median);
  }
  std::printf("}\n");
}

}  // namespace

int bench_dense(int argc, char** argv) {
  auto options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: dense [--model kaggle|mlperf] [--batch N] [--threads N] [--seconds S] "
                 "[--optimizer sgd|adagrad|adam]\n");
    return 2;
  }
  Parallel parallel(options->threads);
  options->threads = parallel.threads();
  auto dlrm = Dlrm::create(options->model, parallel);
  if (!dlrm.ok()) {
    std::fprintf(stderr, "%s\n", dlrm.status().to_string().c_str());
    return 2;
  }
  Bench(*options, parallel, **dlrm).run();
  return 0;
}

}  // namespace rowtide
