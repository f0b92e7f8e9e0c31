#pragma once
// kernels_bench — rows/s of the embedding ops beside what the memory gives in the same run.

namespace rowtide {

// rowtide-bench kernels [--threads N] [--seconds S] [--rows N] [--dim D]
//
// The workload of the embedding peers: 26 tables, batches of 2,048 samples, power-law ids; row-wise
// AdaGrad.  Each case alternates the yardstick (random whole rows summed with prefetch: the
// physical limit of a look-up), deduplication, forward and backward, so that all see the same
// machine, and prints one JSON line of medians, bests and spreads ((90th - 10th percentile) /
// median). Returns the exit code.
int bench_kernels(int argc, char** argv);

}  // namespace rowtide
