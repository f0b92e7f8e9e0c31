#pragma once
// reader_bench — MB/s of the Criteo reader beside what its file and its decompressor allow.

namespace rowtide {

// rowtide-bench reader [--rows N] [--threads N] [--seconds S]
//
// Writes N synthetic rows (400,000) to the temporary folder, plain and as gzip.  Then, in turn, so
// that all see the same machine: the parser alone on text in memory, the reader on the plain file,
// the reader on the gzip file, and ISA-L alone on that file.  Megabytes are of text.  One JSON
// object: the median and spread ((90th - 10th percentile) / median) of each, by the clock and by
// the processor time that all threads took.  Returns the exit code.
int bench_reader(int argc, char** argv);

}  // namespace rowtide
