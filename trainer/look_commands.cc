// rowtide eval, plan and inspect — what a run is worth, takes and holds.

#include <charconv>
#include <cstdio>

#include "trainer/commands.h"
#include "trainer/config_resolve.h"
#include "trainer/config_toml.h"
#include "trainer/console.h"
#include "trainer/evaluation.h"
#include "trainer/memory_plan.h"
#include "trainer/run_directory.h"
#include "trainer/run_summary.h"

namespace rowtide {
namespace {

// The model of a run directory, at its last commit.
Failure open_run(const std::string& directory, Console& console,
                 std::unique_ptr<TrainedModel>& model) {
  auto config = RunDirectory::read_config(directory);
  ROWTIDE_TRY_PART(Part::kConfig, config.status());
  config->tiers.admission = "always";  // the profile may be gone, and nothing is admitted here
  config->tiers.profile.clear();
  const auto say = [&console](const std::string& line) { console.say(line); };
  if (Failure failure = TrainedModel::open(*config, directory, say, model); !failure.ok()) {
    return failure;
  }
  if (model->runtime->commits() == 0) {
    return {{Code::kNotFound, directory + " holds no commit yet"}, Part::kRuntime};
  }
  return {};
}

Failure eval(const EvalArguments& arguments) {
  Console console;
  std::unique_ptr<TrainedModel> model;
  if (Failure failure = open_run(arguments.directory, console, model); !failure.ok()) {
    return failure;
  }
  const auto say = [&console](const std::string& line) { console.say(line); };
  WaitWatch watch(say);
  Quality quality;
  const Failure failure = evaluate(
      *model, {arguments.files, 0}, say, watch,
      [&](const EvalProgress& progress) {
        show(console, progress);
        return true;
      },
      quality);
  console.finish_progress();
  if (!failure.ok()) return failure;
  std::printf("%s after step %llu\n%s", arguments.directory.c_str(),
              static_cast<unsigned long long>(model->position.steps),
              describe_quality(quality).c_str());
  return {};
}

Failure plan(const PlanArguments& arguments) {
  const auto config = load_config(arguments.config, arguments.sets);
  ROWTIDE_TRY_PART(Part::kConfig, config.status());
  const Plan plan = plan_run(*config, config->run.directory);
  if (!plan.lines.empty()) std::printf("%s", describe_plan(plan, *config).c_str());
  ROWTIDE_TRY_PART(Part::kConfig, plan.status);
  return {};
}

void print_tables(const Config& config, const Stats& stats) {
  std::printf("%-12s %16s %16s %6s %10s %16s %8s\n", "table", "rows", "ever written", "width",
              "precision", "optimizer", "mapping");
  for (size_t t = 0; t < config.model.tables.size(); ++t) {
    const TableConfig& table = config.model.tables[t];
    std::printf("%-12s %16llu %16llu %6llu %10s %16s %8s\n", table.name.c_str(),
                static_cast<unsigned long long>(table.rows),
                static_cast<unsigned long long>(stats.tables[t].rows_on_ssd),
                static_cast<unsigned long long>(table.width), table.precision.c_str(),
                table.optimizer.c_str(), table.mapping.c_str());
  }
}

void print_store(const TrainedModel& model, const Stats& stats) {
  std::printf("\n");
  std::printf("  %-14s%llu, the last after step %llu\n", "commits",
              static_cast<unsigned long long>(model.runtime->commits()),
              static_cast<unsigned long long>(model.position.steps));
  std::printf("  %-14sepoch %llu, row %llu; %llu samples trained on\n", "position",
              static_cast<unsigned long long>(model.position.epoch),
              static_cast<unsigned long long>(model.position.row),
              static_cast<unsigned long long>(model.position.samples));
  std::printf("  %-14s%llu ever written\n", "rows",
              static_cast<unsigned long long>(stats.rows_on_ssd));
  std::printf(
      "  %-14s%s of %s, on %s\n", "bytes", readable_size(double(stats.ssd_tier.bytes_used)).c_str(),
      readable_size(double(stats.ssd_tier.bytes_budget)).c_str(), stats.file_system.c_str());
}

// "C3:17": the table's number, width and state floats, and the row.
Failure print_row(TrainedModel& model, const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  int64_t row = -1;
  const char* const end = text.data() + text.size();
  const bool numbered = colon != std::string::npos &&
                        std::from_chars(text.data() + colon + 1, end, row).ptr == end && row >= 0;
  if (!numbered) {
    return {{Code::kInvalid, "--row " + text + ": must be TABLE:ROW, such as C3:17"},
            Part::kConfig};
  }
  const auto& tables = model.config.model.tables;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].name != name) continue;
    const uint64_t width = tables[i].width;
    std::vector<float> weights(width);
    std::vector<float> state(tables[i].optimizer == "sgd"       ? 0
                             : tables[i].optimizer == "adam"    ? 2 * width
                             : tables[i].optimizer == "adagrad" ? width
                                                                : 1);
    ROWTIDE_TRY_PART(Part::kConfig, model.runtime->read_rows(static_cast<uint32_t>(i),
                                                             std::span(&row, 1), weights, state));
    std::printf("%s:%lld\n  weights", name.c_str(), static_cast<long long>(row));
    for (const float value : weights) std::printf(" %.9g", double(value));
    std::printf("\n  state  ");
    for (const float value : state) std::printf(" %.9g", double(value));
    std::printf("\n");
    return {};
  }
  return {{Code::kNotFound, "--row " + text + ": no table is named " + name}, Part::kConfig};
}

Failure inspect(const InspectArguments& arguments) {
  Console console;
  std::unique_ptr<TrainedModel> model;
  if (Failure failure = open_run(arguments.directory, console, model); !failure.ok()) {
    return failure;
  }
  for (const std::string& row : arguments.rows) {
    if (Failure failure = print_row(*model, row); !failure.ok()) return failure;
  }
  if (!arguments.digest && arguments.rows.empty()) {
    const Stats stats = model->runtime->stats();
    print_tables(model->config, stats);
    print_store(*model, stats);
    std::printf("  %-14sthe last commit opens; --digest also reads and checks every row\n",
                "health");
  }
  if (arguments.digest) {
    WaitWatch watch([&console](const std::string& line) { console.say(line); });
    const WaitWatch::Wait wait(watch, "waiting for the digest of all rows");
    const auto digest = model->digest();
    ROWTIDE_TRY_PART(Part::kRuntime, digest.status());
    std::printf("%s\n", digest->to_string().c_str());
  }
  return {};
}

}  // namespace

int eval_command(const EvalArguments& arguments) { return finish_command(eval(arguments)); }
int plan_command(const PlanArguments& arguments) { return finish_command(plan(arguments)); }
int inspect_command(const InspectArguments& arguments) {
  return finish_command(inspect(arguments));
}

int synth_command(SynthOptions options) {
  Console console;
  options.progress = [&console](double fraction) {
    console.progress({"synth", fraction, "writing rows"});
  };
  const Status status = write_synthetic_criteo(options);
  console.finish_progress();
  // What is asked for wrongly is usage; what the disk refuses is storage.
  return finish_command({status, Part::kRuntime});
}

}  // namespace rowtide
