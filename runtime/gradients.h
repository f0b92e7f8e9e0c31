#pragma once
// Gradients — copies of the gradients handed over by backward() until apply() takes them.
//
// One copy a part for each open step.  backward_and_apply() needs none.

#include <cstring>
#include <vector>

#include "runtime/base/carver.h"
#include "runtime/layout.h"
#include "runtime/rowtide.h"

namespace rowtide {

class Gradients {
 public:
  struct Part {
    float* pooled = nullptr;        // (samples, pooled_width)
    std::vector<float*> sequences;  // (its ids, width) each
  };

  Gradients(const Layout& layout, const RuntimeOptions& options, Carver& ddr) {
    for (uint32_t i = 0; i < options.open_steps * options.gradient_parts; ++i) {
      Part part;
      part.pooled = ddr.take<float>(layout.max_samples * layout.pooled_width);
      for (const FeatureLayout& feature : layout.features) {
        if (feature.pooling != Pooling::kNone) continue;
        part.sequences.push_back(ddr.take<float>(feature.most_ids * feature.width));
      }
      parts_.push_back(std::move(part));
      free_.push_back(i);
    }
  }

  // REQUIRES: at most open_steps * gradient_parts are taken.
  Part* take() {
    ROWTIDE_CHECK(!free_.empty());
    const uint32_t i = free_.back();
    free_.pop_back();
    return &parts_[i];
  }
  void give_back(Part* part) { free_.push_back(static_cast<uint32_t>(part - parts_.data())); }

 private:
  std::vector<Part> parts_;
  std::vector<uint32_t> free_;
};

}  // namespace rowtide
