#include "tests/support/criteo_files.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace rowtide {

std::string random_criteo_line(uint64_t seed, bool has_label) {
  std::mt19937_64 random(seed);
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  std::string line = has_label ? (one_in(4) ? "1\t" : "0\t") : "";
  for (int i = 0; i < 13; ++i) {
    const uint64_t limit = one_in(10) ? 2147483648ull : one_in(3) ? 100000 : 50;
    if (!one_in(4)) line += (one_in(8) ? "-" : "") + std::to_string(random() % limit);
    line += "\t";
  }
  for (int i = 0; i < 26; ++i) {
    char hex[9] = "";
    const auto bits = one_in(20) ? random() % 33 : 32;
    if (!one_in(5)) {
      std::snprintf(hex, sizeof hex, one_in(20) ? "%x" : "%08x",
                    static_cast<uint32_t>(random() & ((uint64_t{1} << bits) - 1)));
    }
    line += hex;
    if (i < 25) line += "\t";
  }
  return line;
}

std::string random_criteo_text(uint64_t count, uint64_t seed, const std::string& end,
                               bool has_label) {
  std::string text;
  for (uint64_t i = 0; i < count; ++i) text += random_criteo_line(seed + i, has_label) + end;
  return text;
}

std::vector<ReaderTable> criteo_tables(uint64_t rows, IdMapping mapping) {
  std::vector<ReaderTable> tables;
  for (int i = 1; i <= 26; ++i) tables.push_back({"C" + std::to_string(i), rows, mapping});
  return tables;
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;  // the window's bits, and zlib's flag for gzip
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  gz_header header{};
  Bytef name[] = "train.txt";  // as the gzip program stores it
  header.name = name;
  EXPECT_EQ(deflateSetHeader(&stream, &header), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

namespace {

void append_rows(const ClickBatch& batch, std::vector<CriteoRow>& rows) {
  for (uint64_t s = 0; s < batch.samples; ++s) {
    CriteoRow row;
    if (!batch.labels.empty()) row.label = batch.labels[s];
    row.dense.assign(&batch.dense[s * 13], &batch.dense[s * 13] + 13);
    for (size_t f = 0; f < 26; ++f) row.ids.push_back(batch.ids[f * batch.samples + s]);
    rows.push_back(row);
  }
}

void expect_whole(const ClickBatch& batch, bool has_labels) {
  ASSERT_EQ(batch.labels.size(), has_labels ? batch.samples : 0);
  ASSERT_EQ(batch.dense.size(), batch.samples * 13);
  ASSERT_EQ(batch.ids.size(), batch.samples * 26);
  ASSERT_EQ(batch.offsets.size(), batch.samples * 26 + 1);
  for (size_t i = 0; i < batch.offsets.size(); ++i) {
    ASSERT_EQ(batch.offsets[i], static_cast<int64_t>(i));
  }
}

}  // namespace

Reading read_all(CriteoReaderOptions options) {
  Reading reading;
  auto reader = CriteoReader::open(std::move(options));
  reading.status = reader.status();
  if (!reader.ok()) return reading;
  reading.has_labels = (*reader)->has_labels();
  ClickBatch batch;
  do {
    reading.status = (*reader)->next(batch);
    if (!reading.status.ok()) break;
    expect_whole(batch, reading.has_labels);
    append_rows(batch, reading.rows);
    reading.batch_samples.push_back(batch.samples);
    reading.first_rows.push_back(batch.first_row);
    reading.skipped.push_back(batch.skipped_lines);
  } while (batch.samples > 0);
  reading.stats = (*reader)->stats();
  return reading;
}

Reading read_all(const std::string& file) {
  return read_all(CriteoReaderOptions{.files = {file}, .tables = criteo_tables()});
}

std::optional<std::string> real_criteo_text() {
  const char* const data = std::getenv("ROWTIDE_DATA");
  if (data == nullptr) return std::nullopt;
  std::ifstream file(std::string(data) + "/criteo-kaggle-tiny/train.tiny.csv");
  std::string line, text;
  if (!std::getline(file, line)) return std::nullopt;  // the header
  while (std::getline(file, line)) {
    line.erase(0, line.find(',') + 1);  // the id
    for (char& c : line) c = c == ',' ? '\t' : c;
    text += line + "\n";
  }
  return text;
}

}  // namespace rowtide
