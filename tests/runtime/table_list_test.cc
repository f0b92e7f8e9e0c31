#include "runtime/table_list.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/layout.h"

namespace rowtide {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TableLayout table(const std::string& name, uint64_t rows = 100) {
  TableLayout t;
  t.name = name;
  t.rows = rows;
  t.format = {8, Precision::kFp32, OptimizerKind::kAdam};
  t.init_scale = 0.01f;
  return t;
}

Layout layout_of(std::vector<TableLayout> tables) {
  Layout layout;
  layout.tables = std::move(tables);
  return layout;
}

std::string meta_of(TableList& list, std::vector<TableLayout> tables, uint64_t seed = 7) {
  Layout layout = layout_of(std::move(tables));
  EXPECT_TRUE(list.assign_ids(seed, &layout).ok());
  return list.to_meta({.step = 41, .commits = 3});
}

TEST(TableListTest, IdsAreGivenOncePerNameAndNeverReused) {
  TableList list;
  const std::string first = meta_of(list, {table("a"), table("b"), table("c")});
  CommitHeader header;
  TableList again = TableList::parse(first, &header).value();
  EXPECT_EQ(header.step, 41u);
  EXPECT_EQ(header.commits, 3u);
  // b is dropped, d is new, c comes first and has grown.
  Layout layout = layout_of({table("c", 200), table("d"), table("a")});
  ASSERT_TRUE(again.assign_ids(7, &layout).ok());
  EXPECT_EQ(layout.tables[0].id, 2u);
  EXPECT_EQ(layout.tables[1].id, 3u);
  EXPECT_EQ(layout.tables[2].id, 0u);
  TableList third = TableList::parse(again.to_meta(header), &header).value();
  layout = layout_of({table("e"), table("b")});
  ASSERT_TRUE(third.assign_ids(7, &layout).ok());
  EXPECT_EQ(layout.tables[0].id, 4u);
  EXPECT_EQ(layout.tables[1].id, 1u);
}

TEST(TableListTest, WhatCannotChangeIsNamed) {
  TableList list;
  const std::string meta = meta_of(list, {table("a")});
  const auto error_of = [&](auto&& change, uint64_t seed = 7) {
    CommitHeader header;
    TableList again = TableList::parse(meta, &header).value();
    Layout layout = layout_of({table("a")});
    change(layout.tables[0]);
    const Status status = again.assign_ids(seed, &layout);
    EXPECT_EQ(status.code(), Code::kInvalid);
    return status.message();
  };
  EXPECT_TRUE(
      contains(error_of([](auto& t) { t.format.width = 9; }), "table a was made with width 8"));
  EXPECT_TRUE(contains(error_of([](auto& t) { t.format.precision = Precision::kBf16; }), "bf16"));
  EXPECT_TRUE(contains(error_of([](auto& t) { t.format.optimizer = OptimizerKind::kSgd; }), "sgd"));
  EXPECT_TRUE(contains(error_of([](auto& t) { t.init_scale = 0.5f; }), "init_scale 0.5"));
  EXPECT_TRUE(
      contains(error_of([](auto& t) { t.rows = 99; }), "has 100 rows and cannot shrink to 99"));
  EXPECT_TRUE(contains(error_of([](auto&) {}, 8), "seed"));
}

TEST(TableListTest, UnreadableListsAreErrorsNotCrashes) {
  TableList list;
  const std::string meta = meta_of(list, {table("a"), table("b")});
  CommitHeader header;
  for (const char* text : {"", "7", "{}", "[]", "{\"format\":1}", "nonsense",
                           "{\"format\":1,\"seed\":1,\"step\":0,\"commits\":0,\"tables\":[{}]}"}) {
    EXPECT_EQ(TableList::parse(text, &header).status().code(), Code::kCorrupt) << text;
  }
  EXPECT_EQ(TableList::parse("{\"format\":2}", &header).status().code(), Code::kFormat);
  std::mt19937_64 random(1);
  for (int n = 0; n < 20000; ++n) {
    std::string bent = meta;
    for (uint64_t i = 0; i <= random() % 3; ++i) {
      bent[random() % bent.size()] = static_cast<char>(random() % 256);
    }
    if (random() % 4 == 0) bent.resize(random() % bent.size());
    auto parsed = TableList::parse(bent, &header);
    if (!parsed.ok()) continue;
    Layout layout = layout_of({table("a"), table("b"), table("c")});
    (void)parsed->assign_ids(7, &layout);
  }
}

}  // namespace
}  // namespace rowtide
