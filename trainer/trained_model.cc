#include "trainer/trained_model.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "trainer/run_directory.h"

namespace rowtide {
namespace {

constexpr const char* kRun = "trainer/run";
constexpr const char* kPosition = "trainer/position";
constexpr const char* kMeters = "trainer/meters";

template <typename Number>
CommitArray array_of(const std::string& name, const char* dtype, std::vector<uint64_t> shape,
                     std::span<const Number> values) {
  const auto bytes = std::as_bytes(values);
  return {name, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

// Copies the array of that name.  Errors: kFormat.
template <typename Number>
Status read_array(const std::vector<CommitArray>& arrays, const std::string& name,
                  const char* dtype, std::span<Number> out) {
  for (const CommitArray& array : arrays) {
    if (array.name != name) continue;
    if (array.dtype != dtype || array.bytes.size() != out.size_bytes()) {
      return {Code::kFormat, "the commit's " + name + " has " + std::to_string(array.bytes.size()) +
                                 " bytes of " + array.dtype + "; this model needs " +
                                 std::to_string(out.size_bytes()) + " of " + dtype};
    }
    std::memcpy(out.data(), array.bytes.data(), out.size_bytes());
    return {};
  }
  return {Code::kFormat, "the commit has no array " + name};
}

}  // namespace

void LossWindow::add(double mean_loss, std::span<const float> labels) {
  loss_sum += mean_loss * static_cast<double>(labels.size());
  samples += static_cast<double>(labels.size());
  for (const float label : labels) positives += label;
}

void LossWindow::close() {
  if (samples == 0) return;
  last_loss = loss_sum / samples;
  const double p = positives / samples;
  const double entropy = -p * std::log(p) - (1 - p) * std::log1p(-p);
  last_ne = entropy > 0 ? last_loss / entropy : std::numeric_limits<double>::quiet_NaN();
  loss_sum = samples = positives = 0;
}

Failure TrainedModel::open(const Config& config, const std::string& directory, LogLine log,
                           std::unique_ptr<TrainedModel>& model) {
  const RuntimeOptions options = runtime_options(config, directory, std::move(log));
  ROWTIDE_TRY_PART(Part::kConfig, Runtime::plan(options).status);
  auto run_id = RunDirectory::read_id(directory);
  ROWTIDE_TRY_PART(Part::kConfig, run_id.status());
  model.reset(new TrainedModel(config));
  model->run_id = std::move(*run_id);
  auto dense = Dlrm::create(dlrm_options(config), model->parallel);
  ROWTIDE_TRY_PART(Part::kConfig, dense.status());
  model->dense = std::move(*dense);
  auto runtime = Runtime::open(options);
  ROWTIDE_TRY_PART(Part::kRuntime, runtime.status());
  model->runtime = std::move(*runtime);
  if (model->runtime->commits() == 0) return {};
  ROWTIDE_TRY_PART(Part::kRuntime, model->check_owner(directory));
  ROWTIDE_TRY_PART(Part::kRuntime, model->restore());
  return {};
}

std::vector<CommitArray> TrainedModel::arrays() {
  std::vector<CommitArray> out;
  for (const DenseTensor& tensor : dense->tensors()) {
    out.push_back(array_of<float>(tensor.name, "float32", tensor.shape, tensor.values));
  }
  const int64_t place[] = {static_cast<int64_t>(position.epoch), static_cast<int64_t>(position.row),
                           static_cast<int64_t>(position.steps),
                           static_cast<int64_t>(position.samples), position.file_rows};
  const double meters[] = {window.loss_sum, window.samples, window.positives, window.last_loss,
                           window.last_ne};
  out.push_back(array_of<char>(kRun, "uint8", {run_id.size()}, run_id));
  out.push_back(array_of<int64_t>(kPosition, "int64", {std::size(place)}, place));
  out.push_back(array_of<double>(kMeters, "float64", {std::size(meters)}, meters));
  return out;
}

Status TrainedModel::check_owner(const std::string& directory) const {
  std::string owner(run_id.size(), ' ');
  ROWTIDE_TRY(read_array(runtime->arrays(), kRun, "uint8", std::span<char>(owner)));
  if (owner == run_id) return {};
  const std::string store = runtime_options(config, directory, {}).ssd.front().directory;
  return {Code::kInvalid, "tiers.ssd: " + store + " holds the model of another run, " + owner +
                              "; " + directory + " is run " + run_id +
                              ": name a store of its own, or go on with that run by --resume"};
}

Status TrainedModel::restore() {
  const auto& arrays = runtime->arrays();
  for (const DenseTensor& tensor : dense->tensors()) {
    ROWTIDE_TRY(read_array(arrays, tensor.name, "float32", tensor.values));
  }
  int64_t place[5];
  double meters[5];
  ROWTIDE_TRY(read_array(arrays, kPosition, "int64", std::span<int64_t>(place)));
  ROWTIDE_TRY(read_array(arrays, kMeters, "float64", std::span<double>(meters)));
  position = {static_cast<uint64_t>(place[0]), static_cast<uint64_t>(place[1]),
              static_cast<uint64_t>(place[2]), static_cast<uint64_t>(place[3]), place[4]};
  window = {meters[0], meters[1], meters[2], meters[3], meters[4]};
  dense->set_steps(position.steps);
  return {};
}

Result<Digest> TrainedModel::digest() { return runtime->digest(arrays()); }

}  // namespace rowtide
