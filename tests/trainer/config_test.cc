#include <gtest/gtest.h>

#include "tests/support/scratch_directory.h"
#include "trainer/config_keys.h"
#include "trainer/config_resolve.h"
#include "trainer/config_toml.h"

namespace rowtide {
namespace {

Config parsed(const std::string& text, const std::vector<std::string>& sets = {}) {
  auto config = parse_config(text, "model.toml", sets);
  EXPECT_TRUE(config.ok()) << config.status().to_string();
  return config.ok() ? *config : Config{};
}

std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  const auto config = parse_config(text, "model.toml", sets);
  return config.ok() ? "no error" : config.status().message();
}

TEST(ConfigTest, DefaultsAreFilledIn) {
  const Config config = parsed("");
  EXPECT_EQ(config.model.tables.size(), 26u);
  EXPECT_EQ(config.model.tables[2].name, "C3");
  EXPECT_EQ(config.model.tables[2].rows, 10131227u);
  EXPECT_EQ(config.model.tables[2].width, 16u);
  EXPECT_EQ(config.model.tables[2].mapping, "modulo");
  EXPECT_EQ(config.data.max_ids_per_batch, 2048u * 26);
  EXPECT_EQ(config.run.directory, "runs/model");
}

TEST(ConfigTest, ValuesAreRead) {
  const Config config = parsed(R"(
    [data]
    files = ["a.tsv", "b.tsv.gz"]
    eval_fraction = "1/7"
    [model]
    tables = "criteo-terabyte"
    cap_rows = 40000000
    [optimizer]
    learning_rate = 1
    decoupled = true
    [tiers]
    hbm_bytes = "64MiB"
    ddr_bytes = 1000000
    ssd = [{directory = "/fast", bytes = "1.5 GB"}, {directory = "more", bytes = "2GiB"}]
  )");
  EXPECT_EQ(config.data.files, (std::vector<std::string>{"a.tsv", "b.tsv.gz"}));
  EXPECT_EQ(config.data.eval_fraction, 1.0 / 7);
  EXPECT_EQ(config.model.tables[0].rows, 40000000u);
  EXPECT_EQ(config.model.tables[1].rows, 39060u);
  EXPECT_EQ(config.optimizer.learning_rate, 1.0);
  EXPECT_TRUE(config.optimizer.decoupled);
  EXPECT_EQ(config.tiers.hbm_bytes, 64u << 20);
  EXPECT_EQ(config.tiers.ddr_bytes, 1000000u);
  EXPECT_EQ(config.tiers.ssd, (std::vector<SsdConfig>{{"/fast", 1500000000}, {"more", 2u << 30}}));
}

TEST(ConfigTest, ATableSaysWhatItWantsAndTheModelTheRest) {
  std::string text = "[model]\nprecision = \"fp16\"\ntables = [\n";
  for (int i = 0; i < 26; ++i) {
    text += "  {name = \"T" + std::to_string(i) + "\", rows = 100" +
            (i == 5 ? ", precision = \"bf16\", placement = \"cached\", init_scale = 0" : "") +
            "},\n";
  }
  const Config config = parsed(text + "]\n");
  EXPECT_EQ(config.model.tables[4].precision, "fp16");
  EXPECT_EQ(config.model.tables[5].precision, "bf16");
  EXPECT_EQ(config.model.tables[5].placement, "cached");
  EXPECT_EQ(config.model.tables[4].init_scale, 0.01);
  EXPECT_EQ(config.model.tables[5].init_scale, 0);
}

TEST(ConfigTest, TheProfileIsFoundFromEverywhere) {
  const Config config = parsed("", {"tiers.admission=profile", "tiers.profile=a/../b.txt"});
  EXPECT_EQ(config.tiers.profile, std::filesystem::current_path() / "b.txt");
}

TEST(ConfigTest, OverridesAreTomlOrBareWords) {
  const Config config = parsed("", {"data.batch=128", "tiers.policy=lru", "data.files=my.tsv",
                                    "run.directory=7", "model.bottom=[8, 16]", "tiers.ssd=[]",
                                    "tiers.hbm_bytes=2GiB", "data.eval_fraction=1/4"});
  EXPECT_EQ(config.data.batch, 128u);
  EXPECT_EQ(config.tiers.policy, "lru");
  EXPECT_EQ(config.data.files, std::vector<std::string>{"my.tsv"});
  EXPECT_EQ(config.run.directory, "7");
  EXPECT_EQ(config.model.bottom, (std::vector<uint64_t>{8, 16}));
  EXPECT_TRUE(config.tiers.ssd.empty());
  EXPECT_EQ(config.tiers.hbm_bytes, 2ull << 30);
  EXPECT_EQ(config.data.eval_fraction, 0.25);
}

TEST(ConfigTest, AnUnknownKeyNamesFileLineAndTheNearestKey) {
  EXPECT_EQ(error_of("[model]\n\ndmi = 16\n"),
            "model.toml:3: unknown key model.dmi; did you mean model.dim?");
  EXPECT_EQ(error_of("[tier]\n"), "model.toml:1: unknown key tier; did you mean tiers?");
  EXPECT_EQ(error_of("[tiers]\nssd = [{directory = \"a\", bites = 1}]\n"),
            "model.toml:2: unknown key bites; did you mean bytes?");
  EXPECT_EQ(error_of("", {"run.stepps=3"}),
            "--set run.stepps=3: unknown key run.stepps; did you mean run.steps?");
  EXPECT_EQ(error_of("[model]\ntables = \"criteo-kagle\"\n"),
            "model.toml:2: model.tables = \"criteo-kagle\": no tables are known by this name; did "
            "you mean \"criteo-kaggle\"?");
}

TEST(ConfigTest, TheNearestKeyOfEveryMisspelledKeyIsThatKey) {
  for (const auto& key : config_keys()) {
    const std::string wrong = key.path() + "x";
    EXPECT_EQ(error_of("", {wrong + "=1"}),
              "--set " + wrong + "=1: unknown key " + wrong + "; did you mean " + key.path() + "?");
  }
}

// For each key, values just outside of what is allowed.
TEST(ConfigTest, AValueOutOfRangeNamesKeyValueAndWhatIsAllowed) {
  for (const auto& key : config_keys()) {
    std::vector<std::string> wrong = {"2020-01-01"};
    if (key.name == "tables" || key.name == "ssd") wrong = {"3", "[3]"};
    Config config;
    const ConfigField field = key.field(config);
    const bool text = std::holds_alternative<std::string*>(field) ||
                      std::holds_alternative<std::vector<std::string>*>(field);
    if (text) wrong = {"[[1]]"};
    if (!key.allowed.words.empty()) wrong.push_back("\"nonsense\"");
    if (key.allowed.most > 0) {
      wrong.push_back("-1");
      wrong.push_back("nan");
      if (key.allowed.least > 0) wrong.push_back("0");
      wrong.push_back(key.allowed.most < 1e15 ? "1e15" : "9223372036854775807");
    }
    for (const std::string& value : wrong) {
      const std::string line = "[" + std::string(key.section) + "]\n" + std::string(key.name);
      const std::string error = error_of(line + " = " + value + "\n");
      if (text && key.allowed.words.empty() && value == "[[1]]" &&
          std::holds_alternative<std::string*>(field)) {
        EXPECT_NE(error.find("must be a string"), std::string::npos) << error;
        continue;
      }
      EXPECT_EQ(error.rfind("model.toml:2: " + key.path() + " = ", 0), 0u) << error;
      EXPECT_NE(error.find("must be "), std::string::npos) << error;
    }
  }
  EXPECT_EQ(error_of("[data]\nbatch = 0\n"), "model.toml:2: data.batch = 0: must be 1 to 1048576");
  EXPECT_EQ(
      error_of("[tiers]\nhbm_bytes = \"64MX\"\n"),
      "model.toml:2: tiers.hbm_bytes = \"64MX\": must be 4096 to 2^50 bytes, or a size such as "
      "\"64MiB\"");
  EXPECT_EQ(error_of("[model]\nmapping = \"mod\"\n"),
            "model.toml:2: model.mapping = \"mod\": must be one of: modulo, hash");
}

// What a double allows must still be right as the float that is computed with.
TEST(ConfigTest, TheBoundsOfNumbersHoldAsFloats) {
  const Config config =
      parsed("", {"optimizer.beta1=0.9999999", "optimizer.beta2=0.9999999", "optimizer.eps=1e-30"});
  EXPECT_LT(static_cast<float>(config.optimizer.beta1), 1.0f);
  EXPECT_LT(static_cast<float>(config.optimizer.beta2), 1.0f);
  EXPECT_GT(static_cast<float>(config.optimizer.eps), 0.0f);
  EXPECT_EQ(error_of("", {"optimizer.beta2=0.99999998"}),
            "--set optimizer.beta2=0.99999998: optimizer.beta2 = 0.99999998: must be 0 to "
            "0.9999999");
  EXPECT_EQ(error_of("", {"optimizer.eps=0"}),
            "--set optimizer.eps=0: optimizer.eps = 0: must be 1e-30 to 1");
}

TEST(ConfigTest, BrokenTomlNamesFileAndLine) {
  EXPECT_EQ(error_of("[data]\nbatch = \n").rfind("model.toml:2: no valid TOML: ", 0), 0u);
  EXPECT_EQ(load_config("/nowhere/x.toml").status().code(), Code::kNotFound);
}

TEST(ConfigTest, RulesBetweenKeysAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"[model]\ndim = 8\n", "model.toml: model.bottom must end in model.dim = 8"},
      {"[model]\ntop = [8]\n", "model.toml: model.top must end in 1"},
      {"[data]\neval_files = \"a\"\neval_fraction = 0.5\n",
       "model.toml: data.eval_files and data.eval_fraction exclude each other"},
      {"[tiers]\nknown_batches = 2\n",
       "model.toml: tiers.placed_batches = 4: must be at most tiers.known_batches = 2"},
      {"[data]\nbatch = 8\nmax_ids_per_batch = 207\n",
       "model.toml: data.max_ids_per_batch = 207: a batch of data.batch = 8 has 208"},
      {"[optimizer]\ndecay = \"linear\"\n",
       "model.toml: optimizer.decay = \"linear\" needs optimizer.decay_steps"},
      {"[tiers]\nadmission = \"profile\"\n",
       "model.toml: tiers.admission = \"profile\" and tiers.profile need each other"},
      {"[model]\ntables = [{name = \"a\", rows = 4}]\n",
       "model.toml: model.tables has 1 tables; data.format = \"criteo\" has 26 columns of ids"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message);

  std::string mixed = "[model]\ntables = [";
  for (int i = 0; i < 26; ++i) {
    mixed +=
        "{name = \"T" + std::to_string(i) + "\", rows = 9" + (i == 3 ? ", width = 32" : "") + "},";
  }
  EXPECT_EQ(error_of(mixed + "]\n"),
            "model.toml: model.tables: T3 has width 32; the dot products of kind = \"dlrm\" need "
            "model.dim = 16 everywhere");
}

TEST(ConfigTest, TheResolvedFileParsesToTheSameConfig) {
  const Config config = parsed(
      "[data]\nfiles = [\"a \\\"b\\\" \\\\ c\\t\"]\neval_fraction = \"1/7\"\n"
      "[model]\ntables = \"criteo-terabyte\"\ncap_rows = 1000\n"
      "[optimizer]\nlearning_rate = 0.1\neps = 1e-8\nwarmup = 3\n");
  EXPECT_EQ(parsed(write_config(config)), config);
  const Config defaults = parsed("");
  EXPECT_EQ(parsed(write_config(defaults)), defaults);
  for (const auto& key : config_keys()) {
    EXPECT_NE(write_config(config).find("\n" + std::string(key.name) + " = "), std::string::npos)
        << key.path();
  }
}

TEST(ConfigTest, SizesAreBytesWithOrWithoutAUnit) {
  const std::pair<const char*, uint64_t> good[] = {
      {"0", 0},           {"4096", 4096},          {"1KiB", 1024}, {"64MiB", 64u << 20},
      {"1GiB", 1u << 30}, {"2TiB", 2ull << 40},    {"3 KB", 3000}, {"1.5MiB", 3u << 19},
      {"7B", 7},          {"10GB", 10000000000ull}};
  for (const auto& [text, bytes] : good) {
    ASSERT_TRUE(parse_size(text).ok()) << text;
    EXPECT_EQ(*parse_size(text), bytes) << text;
  }
  for (const char* text : {"", "MiB", "-1MiB", "1Mib", "1 M", "nan", "1e300", "64MiB "}) {
    EXPECT_FALSE(parse_size(text).ok()) << text;
  }
}

TEST(ConfigTest, OnResumeOnlyTiersThreadsAndIntervalsMayChange) {
  const Config before = parsed("");
  const std::vector<std::string> free = {
      "tiers.hbm_bytes=1MiB",   "tiers.policy=lru", "tiers.ssd=[]",       "tiers.known_batches=8",
      "tiers.placement=cached", "run.threads=3",    "run.commit_every=7", "run.eval_every=7",
      "run.metrics_every=7",    "run.digest=true"};
  for (const std::string& set : free) {
    const Status status = check_resume(before, parsed("", {set}));
    EXPECT_TRUE(status.ok()) << set << ": " << status.to_string();
  }
  const std::pair<const char*, const char*> fixed[] = {
      {"data.batch=128", "data.batch was 2048 and is now 128"},
      {"optimizer.learning_rate=0.5", "optimizer.learning_rate was 0.01 and is now 0.5"},
      {"model.seed=2", "model.seed was 1 and is now 2"},
      {"run.steps=9", "run.steps was 0 and is now 9"},
      {"model.tables=criteo-terabyte", "model.tables: C1's rows was 1460 and is now 227605432"},
      {"optimizer.embedding=sgd", "optimizer.embedding was \"rowwise_adagrad\" and is now \"sgd\""},
  };
  for (const auto& [set, message] : fixed) {
    const Status status = check_resume(before, parsed("", {set}));
    EXPECT_EQ(status.message(), message + std::string(": it may not change when a run is resumed"));
  }
}

TEST(ConfigTest, EveryKeyIsInTheHelp) {
  const std::string help = describe_config_keys();
  for (const auto& key : config_keys()) {
    EXPECT_NE(help.find("  " + std::string(key.name) + " = "), std::string::npos) << key.path();
    EXPECT_NE(help.find(key.meaning), std::string::npos) << key.path();
  }
}

TEST(ConfigTest, ShippedModelsParseAndTheReadmeHasEveryKey) {
  for (const char* name : {"kaggle", "terabyte", "demo"}) {
    const auto config = load_config("trainer/configs/" + std::string(name) + ".toml");
    EXPECT_TRUE(config.ok()) << config.status().to_string();
  }
  const std::string readme = read_file("trainer/README.md");
  for (const auto& key : config_keys()) {
    EXPECT_NE(readme.find("`" + std::string(key.name) + "`"), std::string::npos) << key.path();
  }
}

}  // namespace
}  // namespace rowtide
