#include "storage/footer.h"

#include <gtest/gtest.h>

#include <random>

namespace rowtide::storage {
namespace {

std::vector<RecordName> some_names(uint32_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<RecordName> names(count);
  for (RecordName& name : names) {
    if (random() % 5 == 0) continue;  // a skipped slot
    const bool old = random() % 4 == 0;
    name = {make_key(3 + random() % 300, random() % 70000), static_cast<uint32_t>(random() % 900),
            old ? static_cast<uint32_t>(random() % 1000) : 0,
            static_cast<uint8_t>(old ? kValue | kSuperseded : kValue)};
  }
  return names;
}

struct Encoded {
  std::vector<std::byte> bytes;
  FooterTrailer trailer;
  std::span<const std::byte> columns() const {
    return std::span(bytes).subspan(bytes.size() - sizeof trailer - trailer.columns_bytes,
                                    trailer.columns_bytes);
  }
};

Encoded encode(const std::vector<RecordName>& names) {
  FooterSize size;
  for (const RecordName& name : names) {
    if (name.flags != 0) size.add(name);
  }
  Encoded encoded;
  encoded.bytes.resize(size.bytes(static_cast<uint32_t>(names.size())));
  encode_footer(names, size, {.sequence = 5, .use = 77}, encoded.bytes.data());
  std::memcpy(&encoded.trailer, encoded.bytes.data() + encoded.bytes.size() - sizeof(FooterTrailer),
              sizeof(FooterTrailer));
  return encoded;
}

TEST(FooterTest, GivesBackEveryName) {
  for (uint32_t count : {1, 2, 44, 1000}) {
    const auto names = some_names(count, count);
    const Encoded encoded = encode(names);
    ASSERT_TRUE(intact(encoded.trailer));
    Footer footer;
    ASSERT_TRUE(footer.open(encoded.trailer, encoded.columns()));
    ASSERT_EQ(footer.slots(), count);
    for (uint32_t slot = 0; slot < count; ++slot) {
      const RecordName got = footer.name(slot);
      ASSERT_EQ(got.flags, names[slot].flags);
      if (got.flags == 0) continue;
      ASSERT_EQ(got.key, names[slot].key);
      ASSERT_EQ(got.epoch, names[slot].epoch);
      ASSERT_EQ(got.heir, names[slot].heir);
    }
  }
}

TEST(FooterTest, NoticesAFlippedBitAnywhere) {
  const Encoded encoded = encode(some_names(20, 1));
  const size_t begin = encoded.bytes.size() - sizeof(FooterTrailer) - encoded.trailer.columns_bytes;
  for (size_t at = begin; at < encoded.bytes.size(); ++at) {
    Encoded flipped = encoded;
    flipped.bytes[at] ^= std::byte{4};
    std::memcpy(&flipped.trailer,
                flipped.bytes.data() + flipped.bytes.size() - sizeof(FooterTrailer),
                sizeof(FooterTrailer));
    Footer footer;
    EXPECT_FALSE(intact(flipped.trailer) && footer.open(flipped.trailer, flipped.columns())) << at;
  }
}

}  // namespace
}  // namespace rowtide::storage
