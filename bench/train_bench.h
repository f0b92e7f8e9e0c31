#pragma once
// train_bench — samples/s of whole training steps: in memory, and through the tiers.

namespace rowtide {

// rowtide-bench train [--model kaggle|mlperf] [--batch N] [--rows N] [--alpha A] [--threads N]
//                     [--seconds S] [--hot SHARE] [--policy NAME] [--store DIR] [--ssd-share SHARE]
//
// The workload of the embedding yardsticks: 26 tables, power-law ids, batches held in memory.
// Three runs alternate, so that all see the same machine: everything in the hot tier; `--hot` of
// the records in the hot tier and the rest in DDR; and, with --ssd-share, that share of the records
// in hot and DDR together and the rest on SSD.  Prints one JSON object with the median samples/s
// and the spread ((90th - 10th percentile) / median) of each, and the ratios.  Returns the exit
// code.
int bench_train(int argc, char** argv);

}  // namespace rowtide
