#pragma once
// differences — gradients by central finite differences, in double.

#include <cstddef>
#include <vector>

namespace rowtide {

// d f / d x[i] for every i; f() reads x.
template <typename Function>
std::vector<double> central_differences(std::vector<double>& x, Function f, double step = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + step;
    const double above = f();
    x[i] = at - step;
    gradient[i] = (above - f()) / (2 * step);
    x[i] = at;
  }
  return gradient;
}

inline std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

}  // namespace rowtide
