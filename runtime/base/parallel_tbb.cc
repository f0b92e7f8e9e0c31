#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <thread>

#include "runtime/base/parallel.h"

namespace rowtide {

// The arena holds the caller's slot too; global_control lets a laptop ask for more than its cores.
class Parallel::Pool {
 public:
  explicit Pool(int threads)
      : control_(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads)),
        arena_(threads) {}

  void run(size_t count, void (*call)(void*, size_t), void* task) {
    arena_.execute([&] {
      tbb::parallel_for(
          size_t{0}, count, [&](size_t i) { call(task, i); }, tbb::simple_partitioner());
    });
  }

 private:
  tbb::global_control control_;
  tbb::task_arena arena_;
};

Parallel::Parallel(int threads)
    : threads_(threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency())) {
  if (threads_ < 1) threads_ = 1;
  if (threads_ > 1) pool_ = std::make_unique<Pool>(threads_);
}
Parallel::~Parallel() = default;

void Parallel::run_erased(size_t count, void (*call)(void*, size_t), void* task) {
  pool_->run(count, call, task);
}

}  // namespace rowtide
