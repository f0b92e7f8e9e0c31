#include "trainer/config_keys.h"

#include "runtime/base/key.h"

namespace rowtide {
namespace {

template <auto Section, auto Member>
ConfigField field(Config& config) {
  return &(config.*Section.*Member);
}
template <auto Member, typename Owner>
ConfigField entry(Owner& owner) {
  return &(owner.*Member);
}

constexpr Allowed between(double least, double most) { return {.least = least, .most = most}; }
constexpr Allowed one_of(std::string_view words) { return {.words = words}; }
constexpr Allowed bytes(double least) { return {.least = least, .most = 1ull << 50, .size = true}; }
constexpr Allowed kAnything{};
constexpr Allowed kBetas = between(0, 0.9999999);  // 0.99999998 is 1 as a float
constexpr Allowed kSteps = between(0, 1ull << 50);
constexpr bool kFixed = false, kMayChange = true;

constexpr std::string_view kMappings = "modulo|hash";
constexpr std::string_view kPrecisions = "fp32|fp16|bf16";
constexpr std::string_view kPoolings = "sum|mean";
constexpr std::string_view kPlacements = "auto|resident|cached";
constexpr std::string_view kOptimizers = "sgd|adagrad|rowwise_adagrad|adam";

template <auto Member>
constexpr auto data = field<&Config::data, Member>;
template <auto Member>
constexpr auto model = field<&Config::model, Member>;
template <auto Member>
constexpr auto optimizer = field<&Config::optimizer, Member>;
template <auto Member>
constexpr auto tiers = field<&Config::tiers, Member>;
template <auto Member>
constexpr auto run = field<&Config::run, Member>;

using D = DataConfig;
using M = ModelConfig;
using O = OptimizerConfig;
using T = TiersConfig;
using R = RunConfig;

const ConfigKey<Config> kConfigKeys[] = {
    {"data", "files", data<&D::files>, kAnything, kFixed,
     "files to train on, in this order; plain or gzip"},
    {"data", "format", data<&D::format>, one_of("criteo"), kFixed,
     "criteo: tab-separated label, 13 integers, 26 hexadecimal ids"},
    {"data", "eval_files", data<&D::eval_files>, kAnything, kFixed,
     "files to evaluate on; none: the last eval_fraction of files"},
    {"data",
     "eval_fraction",
     data<&D::eval_fraction>,
     {.most = 0.9, .fraction = true},
     kFixed,
     "the last part of the rows, held out; \"1/7\" is accepted"},
    {"data", "batch", data<&D::batch>, between(1, 1 << 20), kFixed, "samples of a step"},
    {"data", "max_ids_per_batch", data<&D::max_ids_per_batch>, between(0, 1u << 31), kFixed,
     "the most ids of a batch, all columns together; 0: one for each column of each sample"},
    {"data", "dense_transform", data<&D::dense_transform>, one_of("log1p|none"), kFixed,
     "of the integers: log1p is ln(max(x, 0) + 1)"},
    {"data", "on_error", data<&D::on_error>, one_of("fail|skip"), kFixed,
     "what a malformed line does: end the run, or be skipped and counted"},

    {"model", "kind", model<&M::kind>, one_of("dlrm"), kFixed, "the dense part"},
    {"model", "dim", model<&M::dim>, between(1, 4096), kFixed,
     "width of the embeddings and of the bottom MLP's output"},
    {"model", "bottom", model<&M::bottom>, between(1, 65536), kFixed,
     "widths of the bottom MLP's layers; the last is dim"},
    {"model", "top", model<&M::top>, between(1, 65536), kFixed,
     "widths of the top MLP's layers; the last is 1"},
    {"model", "tables", model<&M::tables>, kAnything, kFixed,
     "\"criteo-kaggle\", \"criteo-terabyte\", or a list of {name, rows, ...}, one for each column"},
    {"model", "cap_rows", model<&M::cap_rows>, between(0, kMaxRows), kFixed,
     "no table gets more rows than this; 0: no cap"},
    {"model", "mapping", model<&M::mapping>, one_of(kMappings), kFixed,
     "how an id becomes a row, where a table does not say"},
    {"model", "precision", model<&M::precision>, one_of(kPrecisions), kFixed,
     "of the weights, where a table does not say; optimizer state is fp32"},
    {"model", "pooling", model<&M::pooling>, one_of(kPoolings), kFixed,
     "of several ids of a column, where a table does not say"},
    {"model", "init_scale", model<&M::init_scale>, between(0, 100), kFixed,
     "a row never written is uniform in +- this, where a table does not say"},
    {"model", "seed", model<&M::seed>, between(0, 1ull << 53), kFixed,
     "of initial values and stochastic rounding"},

    {"optimizer", "embedding", optimizer<&O::embedding>, one_of(kOptimizers), kFixed,
     "of the tables, where a table does not say"},
    {"optimizer", "dense", optimizer<&O::dense>, one_of("sgd|adagrad|adam"), kFixed, "of the MLPs"},
    {"optimizer", "learning_rate", optimizer<&O::learning_rate>, between(0, 1000), kFixed,
     "after warm-up and before decay"},
    {"optimizer", "warmup", optimizer<&O::warmup>, kSteps, kFixed,
     "steps over which the rate grows linearly from 0"},
    {"optimizer", "decay", optimizer<&O::decay>, one_of("none|linear|quadratic"), kFixed,
     "rate * (1 - part)^1 or ^2, part = (step - decay_start) / decay_steps, then constant"},
    {"optimizer", "decay_start", optimizer<&O::decay_start>, kSteps, kFixed,
     "the step at which decay begins"},
    {"optimizer", "decay_steps", optimizer<&O::decay_steps>, kSteps, kFixed,
     "steps that the decay lasts"},
    {"optimizer", "eps", optimizer<&O::eps>, between(1e-30, 1), kFixed,
     "of AdaGrad and Adam; with 0 a gradient of 0 would be divided by 0"},
    {"optimizer", "beta1", optimizer<&O::beta1>, kBetas, kFixed, "of Adam"},
    {"optimizer", "beta2", optimizer<&O::beta2>, kBetas, kFixed, "of Adam"},
    {"optimizer", "weight_decay", optimizer<&O::weight_decay>, between(0, 1), kFixed,
     "added to the gradient, times the weight"},
    {"optimizer", "decoupled", optimizer<&O::decoupled>, kAnything, kFixed,
     "weight decay is taken from the weights instead (AdamW)"},

    {"tiers", "device", tiers<&T::device>, kAnything, kMayChange, "where the hot tier lies: cpu"},
    {"tiers", "hbm_bytes", tiers<&T::hbm_bytes>, bytes(1 << 12), kMayChange,
     "budget of the hot tier, directory included"},
    {"tiers", "ddr_bytes", tiers<&T::ddr_bytes>, bytes(0), kMayChange,
     "budget of all host memory for tables: warm rows, index, buffers"},
    {"tiers", "ssd", tiers<&T::ssd>, kAnything, kMayChange,
     "a list of {directory, bytes}, relative to the run directory; []: no cold tier, no commits"},
    {"tiers", "io_engine", tiers<&T::io_engine>, one_of("auto|io_uring|threads"), kMayChange,
     "how the SSD is read and written"},
    {"tiers", "policy", tiers<&T::policy>, kAnything, kMayChange,
     "what leaves a full set: clock, lfu, lookahead, lru"},
    {"tiers", "admission", tiers<&T::admission>, one_of("always|count|profile"), kMayChange,
     "what may enter the hot tier; count: from the second use on"},
    {"tiers", "profile", tiers<&T::profile>, kAnything, kMayChange,
     "file of rows \"table:row\", one a line, for admission = \"profile\""},
    {"tiers", "known_batches", tiers<&T::known_batches>, between(1, 4096), kMayChange,
     "how many batches ahead the ids are known"},
    {"tiers", "placed_batches", tiers<&T::placed_batches>, between(1, 4096), kMayChange,
     "how many batches ahead rows are moved"},
    {"tiers", "placement", tiers<&T::placement>, one_of(kPlacements), kMayChange,
     "where a table does not say; auto: resident if the whole table fits, smallest first"},

    {"run", "directory", run<&R::directory>, kAnything, kMayChange,
     "the run directory; empty: runs/NAME for NAME.toml"},
    {"run", "steps", run<&R::steps>, kSteps, kFixed, "steps to train; 0: as epochs says"},
    {"run", "epochs", run<&R::epochs>, between(1, 1 << 20), kFixed,
     "passes over the files at most"},
    {"run", "commit_every", run<&R::commit_every>, kSteps, kMayChange,
     "steps between commits, fewer if tiers.ssd is short; 0: only at the end and on Ctrl-C"},
    {"run", "eval_every", run<&R::eval_every>, kSteps, kMayChange,
     "steps between evaluations; 0: only at the end"},
    {"run", "metrics_every", run<&R::metrics_every>, kSteps, kMayChange,
     "steps between lines of metrics.jsonl; 0: only the first and the last"},
    {"run", "threads", run<&R::threads>, between(0, 4096), kMayChange, "0: one for each core"},
    {"run", "digest", run<&R::digest>, kAnything, kMayChange,
     "print the digest of all rows and dense weights at the end"},
};

const ConfigKey<TableConfig> kTableKeys[] = {
    {"", "name", entry<&TableConfig::name>, kAnything, kFixed, "known by it for ever"},
    {"", "rows", entry<&TableConfig::rows>, between(1, kMaxRows), kFixed, "its cardinality"},
    {"", "width", entry<&TableConfig::width>, between(1, 4096), kFixed, "model.dim"},
    {"", "mapping", entry<&TableConfig::mapping>, one_of(kMappings), kFixed, "model.mapping"},
    {"", "precision", entry<&TableConfig::precision>, one_of(kPrecisions), kFixed,
     "model.precision"},
    {"", "pooling", entry<&TableConfig::pooling>, one_of(kPoolings), kFixed, "model.pooling"},
    {"", "init_scale", entry<&TableConfig::init_scale>, between(0, 100), kFixed,
     "model.init_scale"},
    {"", "optimizer", entry<&TableConfig::optimizer>, one_of(kOptimizers), kFixed,
     "optimizer.embedding"},
    {"", "placement", entry<&TableConfig::placement>, one_of(kPlacements), kMayChange,
     "tiers.placement"},
};

const ConfigKey<SsdConfig> kSsdKeys[] = {
    {"", "directory", entry<&SsdConfig::directory>, kAnything, kMayChange, "made if missing"},
    {"", "bytes", entry<&SsdConfig::bytes>, bytes(1 << 20), kMayChange, "the most it may take"},
};

}  // namespace

std::span<const ConfigKey<Config>> config_keys() { return kConfigKeys; }
std::span<const ConfigKey<TableConfig>> table_keys() { return kTableKeys; }
std::span<const ConfigKey<SsdConfig>> ssd_keys() { return kSsdKeys; }

}  // namespace rowtide
