#pragma once
// row_types — the choices that a table is made of; shared by every floor and the public header.

#include <cstdint>

namespace rowtide {

enum class Precision : uint8_t { kFp32, kFp16, kBf16 };
enum class Pooling : uint8_t { kSum, kMean, kNone };  // kNone: sequence look-up, one row out per id
enum class OptimizerKind : uint8_t { kSgd, kAdagrad, kRowwiseAdagrad, kAdam };

}  // namespace rowtide
