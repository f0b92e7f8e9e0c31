#pragma once
// storage_bench — random reads/s of the cold store beside those of the device itself.

namespace rowtide {

// rowtide-bench storage [--directory DIR] [--bytes SIZE] [--payload N] [--engine
// auto|io_uring|threads]
//                       [--in-flight N] [--seconds S]
//
// Fills a store two thirds full and overwrites as many rows at random, so that the log is cleaned
// and its rows are scattered; then alternates short runs of cold reads with raw reads of the same
// size, as many in flight, at random pages of the same file through the same engine.  Prints one
// JSON object: medians and spreads ((90th - 10th percentile) / median), their ratio, nanoseconds of
// the calling thread for an append and a started read, and the write amplification of cleaning.
// Returns the exit code.
int bench_storage(int argc, char** argv);

}  // namespace rowtide
