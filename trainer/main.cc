// rowtide — the command line.

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/rowtide.h"
#include "trainer/commands.h"
#include "trainer/config_keys.h"
#include "trainer/exit_code.h"

namespace {

using rowtide::describe_exit_codes;

void add_synth(CLI::App& app, int& result) {
  CLI::App* const synth = app.add_subcommand("synth", "Write a data set with a known ceiling");
  synth->require_subcommand(1);
  synth->footer(describe_exit_codes());
  CLI::App* const criteo = synth->add_subcommand("criteo", "Criteo format, plain or gzip");
  criteo->footer(describe_exit_codes());
  static rowtide::SynthOptions options;
  criteo->add_option("--rows", options.rows, "Rows to write")->required();
  criteo->add_option("--seed", options.seed, "Of everything drawn")->capture_default_str();
  criteo->add_option("--out", options.out, "File; compressed if it ends in .gz")->required();
  criteo->add_option("--files", options.files, "NAME-0 .. NAME-(N-1)")->capture_default_str();
  criteo->add_option("--scale", options.scale, "Of the cardinalities")->capture_default_str();
  criteo->add_option("--threads", options.threads, "0: one for each core")->capture_default_str();
  criteo->callback([&result] { result = rowtide::synth_command(options); });
}

void add_train(CLI::App& app, int& result) {
  CLI::App* const train = app.add_subcommand("train", "Train a model, or go on with a run");
  static rowtide::TrainArguments arguments;
  train->add_option("config", arguments.config, "TOML file")->required();
  train->add_option("--set", arguments.sets, "section.key=value, may be repeated")
      ->allow_extra_args(false);
  train->add_flag("--resume", arguments.resume, "Go on after the last commit");
  train->add_option("--steps", arguments.steps,
                    "Stop after so many steps in all; --resume goes on to the configured end");
  train->footer(std::string(describe_exit_codes()) + "\n\nKeys of the configuration:\n" +
                rowtide::describe_config_keys());
  train->callback([&result] { result = rowtide::train_command(arguments); });
}

void add_eval(CLI::App& app, int& result) {
  CLI::App* const eval = app.add_subcommand("eval", "Evaluate a run's last commit");
  static rowtide::EvalArguments arguments;
  eval->add_option("directory", arguments.directory, "Run directory")->required();
  eval->add_option("--data", arguments.files, "Files with labels")->required();
  eval->footer(describe_exit_codes());
  eval->callback([&result] { result = rowtide::eval_command(arguments); });
}

void add_plan(CLI::App& app, int& result) {
  CLI::App* const plan = app.add_subcommand("plan", "Say what memory a run would take");
  static rowtide::PlanArguments arguments;
  plan->add_option("config", arguments.config, "TOML file")->required();
  plan->add_option("--set", arguments.sets, "section.key=value, may be repeated")
      ->allow_extra_args(false);
  plan->footer(describe_exit_codes());
  plan->callback([&result] { result = rowtide::plan_command(arguments); });
}

void add_inspect(CLI::App& app, int& result) {
  CLI::App* const inspect =
      app.add_subcommand("inspect", "Show a run: tables, rows, bytes, commits, health");
  static rowtide::InspectArguments arguments;
  inspect->add_option("directory", arguments.directory, "Run directory")->required();
  inspect->add_flag("--digest", arguments.digest, "Digest of all rows and dense weights");
  inspect->add_option("--row", arguments.rows, "TABLE:ROW, may be repeated")
      ->allow_extra_args(false);
  inspect->footer(describe_exit_codes());
  inspect->callback([&result] { result = rowtide::inspect_command(arguments); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rowtide trains embedding tables larger than memory.", "rowtide");
  app.set_version_flag("--version", std::string("rowtide ") + rowtide::version());
  app.require_subcommand(1);
  app.footer(describe_exit_codes());
  int result = 0;
  add_synth(app, result);
  add_train(app, result);
  add_eval(app, result);
  add_plan(app, result);
  add_inspect(app, result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : rowtide::kExitUsage;
  }
  return result;
}
