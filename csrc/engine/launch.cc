// Runs the blocks of a grid, spread over host threads.
#include <algorithm>
#include <atomic>
#include <cfenv>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "core.h"

namespace pto::engine {
namespace {

[[noreturn]] void Refuse(const Function* f, const std::string& file, const std::string& message) {
  ErrorPlace place;
  if (f) {
    place.function = f->name;
    place.line = f->line;
  }
  place.file = file;
  throw Error(message, place);
}

class Launcher {
 public:
  Launcher(const CompiledFunction& f, int64_t grid, const LaunchOptions& options, std::vector<Tensor> tensors,
           std::vector<uint64_t> arguments)
      : function_(f), grid_(grid), options_(options), tensors_(std::move(tensors)), arguments_(std::move(arguments)) {}

  void Run(LaunchStats* stats) {
    int64_t threads = options_.host_threads > 0 ? options_.host_threads : std::thread::hardware_concurrency();
    threads = std::max<int64_t>(1, std::min(threads, grid_));
    // The threads live as long as the launch, so nothing is left over that a fork could break.
    std::vector<std::thread> pool;
    for (int64_t i = 1; i < threads; ++i) {
      try {
        pool.emplace_back([this] { Work(); });
      } catch (const std::system_error&) {
        break;  // fewer threads give the same result
      }
    }
    Work();
    for (std::thread& t : pool) t.join();
    if (error_) std::rethrow_exception(error_);
    if (stats) *stats = stats_;
  }

 private:
  void Work() {
    // Results must not depend on what the caller did to rounding or subnormals.
    std::fenv_t saved;
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
    WorkBlocks();
    std::fesetenv(&saved);
  }

  void WorkBlocks() {
    InOrderPolicy policy;
    Workspace workspace;
    std::unique_ptr<Core> core;
    LaunchStats stats;
    int64_t block = 0;
    try {
      core = std::make_unique<Core>(function_, options_, policy);
      // Blocks are handed out in order: when one fails, all lower ones are handed out already and run to their end, so
      // the lowest failing block is always found.
      while ((block = next_.fetch_add(1)) < grid_ && block < failed_.load()) {
        core->Reset(block, grid_, tensors_, arguments_, &workspace);
        // No core waits for another one yet: a parked core has nobody to wake it.
        if (core->Run() == Core::State::kParked) core->FailDeadlock();
        core->AddStats(&stats);
      }
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (block < failed_.load()) {
        failed_.store(block);
        error_ = std::current_exception();
      }
      // Other blocks below this one may still be unfinished on this thread's peers only, so this thread can stop.
    }
    std::lock_guard<std::mutex> lock(mutex_);
    Merge(stats);
  }

  void Merge(const LaunchStats& s) {
    stats_.cores += s.cores;
    stats_.scalar_instructions += s.scalar_instructions;
    stats_.vector_instructions += s.vector_instructions;
    stats_.vf_scalar_instructions += s.vf_scalar_instructions;
    stats_.simt_thread_instructions += s.simt_thread_instructions;
    stats_.vector_functions += s.vector_functions;
    stats_.dma_commands += s.dma_commands;
    stats_.dma_bytes += s.dma_bytes;
  }

  const CompiledFunction& function_;
  const int64_t grid_;
  const LaunchOptions& options_;
  const std::vector<Tensor> tensors_;
  const std::vector<uint64_t> arguments_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> failed_{std::numeric_limits<int64_t>::max()};
  std::mutex mutex_;
  std::exception_ptr error_;
  LaunchStats stats_;
};

}  // namespace

void Launch(const Program& program, const std::string& function, const std::vector<Arg>& args, int64_t grid,
            const LaunchOptions& options, LaunchStats* stats) {
  const Function* f = program.Find(function);
  if (!f) Refuse(nullptr, program.source_file(), "the program has no function " + function);
  if (args.size() != f->parameters.size()) {
    Refuse(f, program.source_file(),
           "the function has " + std::to_string(f->parameters.size()) + " parameters, " + std::to_string(args.size()) +
               " arguments were given");
  }
  if (grid < 0) Refuse(f, program.source_file(), "the grid is " + std::to_string(grid));
  if (options.ub_bytes < 256 || options.ub_bytes > (int64_t{1} << 30)) {
    Refuse(f, program.source_file(), "ub_bytes is " + std::to_string(options.ub_bytes));
  }
  std::vector<Tensor> tensors;
  std::vector<uint64_t> values;
  for (size_t i = 0; i < args.size(); ++i) {
    const Parameter& p = f->parameters[i];
    const bool pointer = p.type.kind == Kind::kPointer;
    if (pointer != (args[i].kind == Arg::kPointer)) {
      Refuse(f, program.source_file(), "parameter " + p.name + " is a " + Name(p.type.kind) + ", the argument is not");
    }
    if (pointer) {
      // Every pointer argument is a tensor of its own, also when two of them alias.
      tensors.push_back({static_cast<uint8_t*>(args[i].data), args[i].extent_bytes});
      if (tensors.size() > 0xFFFE) Refuse(f, program.source_file(), "too many pointer arguments");
      values.push_back(MakePointer(static_cast<uint32_t>(tensors.size()), 0));
    } else {
      const int bytes = ByteSize(p.type.dtype);
      const uint64_t mask = bytes >= 8 ? ~UINT64_C(0) : (UINT64_C(1) << (8 * bytes)) - 1;
      values.push_back(p.type.dtype == DType::kI1 ? args[i].bits & 1 : args[i].bits & mask);
    }
  }
  if (stats) *stats = LaunchStats();
  if (grid == 0) return;
  Launcher(static_cast<const CompiledFunction&>(*f), grid, options, std::move(tensors), std::move(values)).Run(stats);
}

}  // namespace pto::engine
