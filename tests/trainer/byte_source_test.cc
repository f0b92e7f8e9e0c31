#include "trainer/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/support/criteo_files.h"
#include "tests/support/scratch_directory.h"

namespace rowtide {
namespace {

TEST(ByteSourceTest, ReadsBytesOfAnyKindInPiecesOfAnySize) {
  const ScratchDirectory scratch;
  std::string content;
  for (uint32_t i = 0; i < 100000; ++i) content += static_cast<char>(i * i >> 3);
  for (const std::string& whole :
       {content, std::string("\x1f"), std::string("\x1f\n"), std::string(1, '\0')}) {
    write_file(scratch.file("plain"), whole);
    write_file(scratch.file("gz"), gzipped(whole));
    for (const char* name : {"plain", "gz"}) {
      for (size_t piece : {1, 2, 1000, 200000}) {
        if (piece == 1 && whole.size() > 1000) continue;
        auto source = ByteSource::open(scratch.file(name));
        ASSERT_TRUE(source.ok());
        std::string got, out(piece, '\0');
        for (;;) {
          const auto size = (*source)->read(out);
          ASSERT_TRUE(size.ok()) << size.status().to_string();
          if (*size == 0) break;
          got.append(out, 0, *size);
        }
        EXPECT_EQ(got, whole);
        EXPECT_EQ((*source)->file_bytes(), read_file(scratch.file(name)).size());
      }
    }
  }
}

TEST(ByteSourceTest, ADiskThatRefusesIsNamedWithTheOffset) {
  // The kernel answers a read of page zero of this process's memory with EIO.
  const auto source = ByteSource::open("/proc/self/mem");
  EXPECT_EQ(source.status().code(), Code::kIo) << source.status().to_string();
  EXPECT_NE(source.status().message().find("/proc/self/mem: cannot be read at byte 0"),
            std::string::npos);
}

TEST(ByteSourceTest, AReaderMayReadFromAPipe) {
  const ScratchDirectory scratch;
  const std::string pipe = scratch.file("pipe"), text = random_criteo_text(3000, 1);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& bytes : {text, gzipped(text)}) {
    std::thread writer([&] { write_file(pipe, bytes); });
    const Reading reading = read_all(pipe);
    writer.join();
    EXPECT_TRUE(reading.status.ok()) << reading.status.to_string();
    EXPECT_EQ(reading.rows, reference_criteo_rows(text, true));
    EXPECT_EQ(reading.stats.total_file_bytes, 0u);
  }
}

}  // namespace
}  // namespace rowtide
