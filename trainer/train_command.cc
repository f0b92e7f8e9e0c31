// rowtide train — a run from its configuration to its report.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/host_arena.h"
#include "trainer/commands.h"
#include "trainer/config_toml.h"
#include "trainer/console.h"
#include "trainer/interrupt.h"
#include "trainer/memory_plan.h"
#include "trainer/metrics_log.h"
#include "trainer/report.h"
#include "trainer/run_directory.h"
#include "trainer/run_summary.h"
#include "trainer/train_loop.h"

namespace rowtide {
namespace {

namespace fs = std::filesystem;

// A run opens its files several times, and a pipe gives its beginning only once.
Status check_regular(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code error;  // the reader tells what is missing, or a directory
    if (!fs::exists(file, error) || fs::is_regular_file(file, error)) continue;
    if (fs::is_directory(file, error)) continue;
    return {Code::kInvalid, file + ": is a pipe or a device; a run needs files"};
  }
  return {};
}

// What can be known to fail is said before anything is written.
Failure check_beforehand(const Config& config, const Plan& plan) {
  ROWTIDE_TRY_PART(Part::kConfig, plan.status);
  ROWTIDE_TRY_PART(Part::kConfig, check_host_memory(plan, available_host_bytes()));
  if (config.data.files.empty()) {
    return {{Code::kInvalid, "data.files names no file to train on"}, Part::kConfig};
  }
  for (const auto* files : {&config.data.files, &config.data.eval_files}) {
    if (files->empty()) continue;
    ROWTIDE_TRY_PART(Part::kData, check_regular(*files));
    ROWTIDE_TRY_PART(Part::kData,
                     CriteoReader::open(reader_options(config, *files, 0, 1, {})).status());
  }
  return {};
}

class TrainRun {
 public:
  TrainRun(Config config, const TrainArguments& arguments)
      : config_(std::move(config)), arguments_(arguments) {}

  Failure run() {
    Plan plan = plan_run(config_, config_.run.directory);
    if (Failure failure = check_beforehand(config_, plan); !failure.ok()) return failure;
    auto directory = RunDirectory::prepare(config_, arguments_.resume);
    ROWTIDE_TRY_PART(Part::kRuntime, directory.status());
    directory_ = std::move(*directory);
    if (Failure failure = open_model(std::move(plan)); !failure.ok()) return failure;
    return train();
  }

 private:
  void say(const std::string& line) {
    console_.say(line);
    log_.write(line);
  }

  Failure open_model(Plan plan) {
    log_line_ = [this](const std::string& line) { say(line); };
    if (Failure failure = TrainedModel::open(config_, directory_.path(), log_line_, model_);
        !failure.ok()) {
      model_.reset();
      if (!directory_.resumed()) directory_.withdraw();
      return failure;
    }
    if (model_->runtime->commits() == 0) {
      ROWTIDE_TRY_PART(Part::kConfig, directory_.check_moved(config_));
    }
    if (directory_.resumed()) ROWTIDE_TRY_PART(Part::kRuntime, directory_.keep(config_));
    log_.open(directory_.file("run.log"));
    const Stats stats = model_->runtime->stats();
    start_ = {.config = config_,
              .plan = std::move(plan.lines),
              .instruction_set = stats.instruction_set,
              .io_engine = stats.io_engine,
              .file_system = stats.file_system,
              .step = model_->position.steps};
    auto metrics = MetricsLog::open(directory_.file("metrics.jsonl"), arguments_.resume, start_);
    ROWTIDE_TRY_PART(Part::kRuntime, metrics.status());
    metrics_.emplace(std::move(*metrics));
    if (arguments_.resume) {
      say(model_->runtime->commits() == 0
              ? "there is no commit yet: beginning"
              : "going on after step " + std::to_string(model_->position.steps));
    }
    return {};
  }

  Failure train() {
    TrainLoop loop(*model_, *metrics_, console_, {arguments_.steps, log_line_});
    Failure failure = loop.run();
    std::string digest;
    if (failure.ok() && config_.run.digest) failure = take_digest(digest);
    EndRecord end = loop.end_record(failure);
    end.digest = std::move(digest);
    if (end.event == "interrupted") end.message = how_to_go_on();
    return leave(std::move(end), std::move(failure));
  }

  Failure take_digest(std::string& out) {
    WaitWatch watch(log_line_);
    const WaitWatch::Wait wait(watch, "the end waits for the digest of all rows");
    const auto digest = model_->digest();
    ROWTIDE_TRY_PART(Part::kRuntime, digest.status());
    out = digest->to_string();
    return {};
  }

  // The resolved configuration has what --set changed.
  std::string how_to_go_on() const {
    if (model_->runtime->commits() == 0) return "nothing is kept, since tiers.ssd is empty";
    return "to go on: rowtide train " + directory_.file("config.toml") + " --resume";
  }

  // The last line of metrics, the report and the table, however the run ended.
  Failure leave(EndRecord end, Failure failure) {
    Status status = metrics_->end(end);
    if (status.ok()) {
      status = write_report(directory_.file("metrics.jsonl"), directory_.file("report.html"));
    }
    log_.write(end.event + " after step " + std::to_string(end.last.steps) +
               (end.message.empty() ? "" : ": " + end.message));
    if (!failure.ok()) return failure;  // it says more than what came after it
    ROWTIDE_TRY_PART(Part::kRuntime, status);
    std::printf("%s\n%s  %-14s%s\n", directory_.path().c_str(), describe_run(end, start_).c_str(),
                "report", directory_.file("report.html").c_str());
    if (!end.message.empty()) std::printf("%s\n", end.message.c_str());
    return {};
  }

  const Config config_;
  const TrainArguments& arguments_;
  Console console_;
  RunDirectory directory_;
  RunLog log_;
  LogLine log_line_;
  StartRecord start_;
  std::unique_ptr<TrainedModel> model_;
  std::optional<MetricsLog> metrics_;
};

}  // namespace

int train_command(const TrainArguments& arguments) {
  auto config = load_config(arguments.config, arguments.sets);
  Failure failure{config.status(), Part::kConfig};
  if (failure.ok()) {
    watch_for_interrupts();
    failure = TrainRun(std::move(*config), arguments).run();
  }
  return finish_command(failure);
}

}  // namespace rowtide
