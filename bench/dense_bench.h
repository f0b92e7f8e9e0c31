#pragma once
// dense_bench — samples/s of the dense part beside the limit that its matrix products set.

namespace rowtide {

// rowtide-bench dense [--model kaggle|mlperf] [--batch N] [--threads N] [--seconds S]
//                     [--optimizer sgd|adagrad|adam]
//
// Alternates whole steps (forward, backward, update) with the same step's matrix products alone, so
// that both see the same machine, and prints one JSON object: median samples/s and spread
// ((90th - 10th percentile) / median) of each.  Returns the exit code.
int bench_dense(int argc, char** argv);

}  // namespace rowtide
