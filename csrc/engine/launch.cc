// Runs the blocks of a grid, spread over host threads.
#include <algorithm>
#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "block.h"
#include "policies.h"
#include "timing_figures.h"

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

// Threads that do one job after the other together. They live as long as the launch, so nothing is left over that a
// fork could break.
class Workers {
 public:
  explicit Workers(int64_t threads) {
    for (int64_t i = 1; i < threads; ++i) {
      try {
        pool_.emplace_back([this] { Loop(); });
      } catch (const std::system_error&) {
        break;  // fewer threads give the same result
      }
    }
  }
  ~Workers() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = nullptr;
      ++generation_;
    }
    wake_.notify_all();
    for (std::thread& t : pool_) t.join();
  }

  // Every thread, this one too, runs the job once.
  void Run(const std::function<void()>& job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      busy_ = pool_.size();
      ++generation_;
    }
    wake_.notify_all();
    job();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void Loop() {
    uint64_t seen = 0;
    for (;;) {
      const std::function<void()>* job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return generation_ != seen; });
        seen = generation_;
        job = job_;
      }
      if (!job) return;
      (*job)();
      std::lock_guard<std::mutex> lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> pool_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void()>* job_ = nullptr;
  uint64_t generation_ = 0;
  size_t busy_ = 0;
};

// Of one chip.
constexpr int64_t kVectorCores = static_cast<int64_t>(figure::kVectorCores);
constexpr int64_t kCubeCores = static_cast<int64_t>(figure::kCubeCores);

class Launcher final : public CoreOrder {
 public:
  Launcher(const CompiledFunction& f, int64_t grid, const LaunchOptions& options, std::vector<Tensor> tensors,
           std::vector<uint64_t> arguments)
      : function_(f),
        grid_(grid),
        options_(options),
        global_(std::move(tensors)),
        arguments_(std::move(arguments)),
        ordered_(f.ordered || (f.vector_side && f.vector_side->ordered)),
        cross_(f.cross.op || !f.vector_side ? f.cross : f.vector_side->cross),
        history_(f) {
    if (options.timing && options.report) timing_ = std::make_unique<TimingLaunch>(f, grid, options);
    if (ordered_) stopped_.assign(static_cast<size_t>(grid), 0);
  }

  void Run(LaunchStats* stats) {
    int64_t threads = options_.host_threads > 0 ? options_.host_threads : std::thread::hardware_concurrency();
    threads = std::max<int64_t>(1, std::min(threads, grid_));
    {
      Workers workers(threads);
      if (cross_.op) {
        RunResident(workers);
      } else {
        workers.Run([this] { Calm([this] { WorkBlocks(); }); });
      }
    }
    ReportFindings();
    if (timing_ && !error_) timing_->Report(options_.report);
    if (error_) {
      // What the failed block has printed comes behind the texts of the blocks before it.
      for (auto& [block, text] : texts_) {
        if (block <= failed_.load()) Print(text);
      }
      std::rethrow_exception(error_);
    }
    if (stats) *stats = stats_;
  }

  // Cores that can see the order among each other go in the order of their numbers.
  void Await(int64_t block) override {
    if (first_running_.load(std::memory_order_acquire) == block) return;
    std::unique_lock<std::mutex> lock(mutex_);
    turn_.wait(lock, [&] { return first_running_.load() == block || failed_.load() < block; });
    if (failed_.load() < block) throw Cancelled();
  }

 private:
  // Results must not depend on what the caller did to rounding or subnormals.
  template <class F>
  static void Calm(F f) {
    std::fenv_t saved;
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
    f();
    std::fesetenv(&saved);
  }

  void WorkBlocks() {
    const std::unique_ptr<DrainPolicy> policy = MakePolicy(options_);
    std::unique_ptr<Block> runner;
    LaunchStats stats;
    int64_t block = 0;
    try {
      runner = std::make_unique<Block>(function_, options_, *policy, *this, barriers_, timing_.get());
      // Blocks are handed out in order: when one fails, all lower ones are handed out already and run to their end, so
      // the lowest failing block is always found.
      while ((block = next_.fetch_add(1)) < grid_ && block < failed_.load()) {
        runner->Reset(block, grid_, global_, arguments_);
        // Nothing comes from another block: what waits now has nobody to wake it.
        if (!runner->Run()) runner->FailDeadlock();
        runner->CheckEnd();
        runner->AddStats(&stats);
        if (runner->hazards()) runner->hazards()->Finish(&history_);
        if (timing_) timing_->Add(block, runner->timing()->Take(runner->cores()));
        if (options_.blocks_done) ++*options_.blocks_done;
        if (ordered_) Stopped(block, runner->Text());
      }
    } catch (...) {
      // Other blocks below this one may still be unfinished on this thread's peers only, so this thread can stop.
      Failed(block, runner ? runner->Text() : "");
    }
    std::lock_guard<std::mutex> lock(mutex_);
    Merge(stats);
    if (runner) MergeFindings(*runner);
    if (runner && timing_) timing_->Add(runner->timing()->Totals());
  }

  // Of the same pair of lines the one in the lowest block is kept, whatever thread found it.
  void MergeFindings(Block& block) {
    if (!block.hazards()) return;
    for (Finding& f : block.hazards()->Findings()) AddFinding(std::move(f));
  }

  void AddFinding(Finding f) {
    const std::string rank = f.kind == "race" ? "" : f.kind;  // races come first
    const auto key = std::make_tuple(rank, f.first.line, f.second.line, f.first.write, f.second.write, f.memory);
    auto [known, fresh] = findings_.try_emplace(key, f);
    if (fresh) return;
    const int64_t count = known->second.count + f.count;
    if (f.first.block < known->second.first.block) known->second = std::move(f);
    known->second.count = count;
  }

  // Findings go to the caller's report; without one the first of them is an error.
  void ReportFindings() {
    if (options_.check == Check::kOff) return;
    std::vector<std::string> notes;
    if (!error_) {
      for (Finding& f : history_.Races(&notes)) AddFinding(std::move(f));
    }
    std::vector<Finding> all;
    for (auto& [key, f] : findings_) all.push_back(std::move(f));
    if (options_.report) {
      options_.report->findings = std::move(all);
      options_.report->notes.insert(options_.report->notes.end(), notes.begin(), notes.end());
    } else if (!error_ && !all.empty()) {
      throw FindingError(function_.name, *function_.code.file, all);
    }
  }

  void Failed(int64_t block, std::string text) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (block < failed_.load()) {
      failed_.store(block);
      error_ = std::current_exception();
      if (!text.empty()) texts_[block] = std::move(text);
    }
    turn_.notify_all();
  }

  void Stopped(int64_t block, std::string text) {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_[static_cast<size_t>(block)] = 1;
    if (!text.empty()) texts_[block] = std::move(text);
    int64_t first = first_running_.load();
    if (block != first) return;
    for (; first < grid_ && stopped_[static_cast<size_t>(first)]; ++first) {
      auto it = texts_.find(first);
      if (it == texts_.end()) continue;
      Print(it->second);
      texts_.erase(it);
    }
    first_running_.store(first, std::memory_order_release);
    turn_.notify_all();
  }

  void Print(const std::string& text) const {
    if (options_.print) {
      options_.print(text);
    } else {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  }

  // --- kernels with barriers among the cores: all cores exist at once ---
  //
  // In rounds: every core runs until it has finished or waits for the others. Flags are handed over between rounds, so
  // what a core sees does not depend on how fast the others are.

  void RunResident(Workers& workers) {
    const bool cube = function_.core == CoreKind::kCube;
    if (grid_ > (cube ? kCubeCores : kVectorCores)) {
      FailLaunch(*cross_.op + " needs all " + std::to_string(grid_) + " blocks at once, there are " +
                 (cube ? std::to_string(kCubeCores) + " cube cores" : std::to_string(kVectorCores) + " vector cores"));
    }
    const std::unique_ptr<DrainPolicy> policy = MakePolicy(options_);
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<uint8_t> finished(static_cast<size_t>(grid_), 0);
    for (int64_t i = 0; i < grid_; ++i) {
      blocks.push_back(std::make_unique<Block>(function_, options_, *policy, *this, barriers_, timing_.get()));
      blocks.back()->Reset(i, grid_, global_, arguments_);
    }
    for (int64_t left = grid_; left > 0;) {
      next_.store(0);
      if (ordered_) {
        stopped_ = finished;
        int64_t first = 0;
        while (stopped_[static_cast<size_t>(first)]) ++first;
        first_running_.store(first);
      }
      workers.Run([&] {
        Calm([&] {
          int64_t i;
          while ((i = next_.fetch_add(1)) < grid_ && i < failed_.load()) {
            const size_t at = static_cast<size_t>(i);
            if (finished[at]) continue;
            try {
              if (blocks[at]->Run()) {
                finished[at] = 1;
                blocks[at]->CheckEnd();
                if (options_.blocks_done) ++*options_.blocks_done;
              }
              if (ordered_) Stopped(i, "");
            } catch (...) {
              Failed(i, "");
            }
          }
        });
      });
      if (error_) break;
      left = std::count(finished.begin(), finished.end(), 0);
      if (left == 0 || HandOver(blocks)) continue;
      try {
        FailDeadlock(blocks);
      } catch (...) {
        error_ = std::current_exception();
        break;
      }
    }
    for (auto& block : blocks) {
      if (block->index() > failed_.load()) break;
      Print(block->Text());
    }
    for (auto& block : blocks) {
      if (block->hazards()) block->hazards()->Finish(&history_);
      MergeFindings(*block);
    }
    if (error_) return;
    for (auto& block : blocks) {
      for (const auto& core : block->cores()) CheckCrossFlags(*core);
      block->AddStats(&stats_);
      if (!timing_) continue;
      timing_->Add(block->index(), block->timing()->Take(block->cores()));
      timing_->Add(block->timing()->Totals());
    }
  }

  // True when some core got a flag.
  bool HandOver(const std::vector<std::unique_ptr<Block>>& blocks) {
    std::vector<Core*> vector_cores, cube_cores;
    for (const auto& block : blocks) {
      for (const auto& core : block->cores()) {
        (core->function().core == CoreKind::kCube ? cube_cores : vector_cores).push_back(core.get());
      }
    }
    const bool vector = !vector_cores.empty() && HandOver(vector_cores);
    const bool cube = !cube_cores.empty() && HandOver(cube_cores);
    if (options_.check == Check::kFull) {
      for (int id = 0; id < CrossFlags::kIds; ++id) {
        if (!vector_cores.empty()) DeliverClocks(blocks, id, vector_cores[0]->cross.delivered[id]);
        if (!cube_cores.empty()) DeliverClocks(blocks, CrossFlags::kIds + id, cube_cores[0]->cross.delivered[id]);
      }
    }
    return cube || vector;
  }

  // What a wait for a round of a flag teaches: the rounds that those who set it knew of.
  void DeliverClocks(const std::vector<std::unique_ptr<Block>>& blocks, int barrier, uint32_t delivered) {
    while (barriers_.Rounds(barrier) < delivered) {
      const uint32_t round = static_cast<uint32_t>(barriers_.Rounds(barrier)) + 1;
      BarrierRounds rounds{};
      for (const auto& block : blocks) block->hazards()->AddRound(barrier, round, &rounds);
      rounds[static_cast<size_t>(barrier)] = std::max(rounds[static_cast<size_t>(barrier)], round);
      barriers_.Deliver(barrier, rounds);
    }
  }

  // The same for all cores of one kind.
  static bool HandOver(const std::vector<Core*>& cores) {
    bool any = false;
    for (int id = 0; id < CrossFlags::kIds; ++id) {
      uint32_t all = cores[0]->cross.set[id];
      for (const Core* core : cores) all = std::min(all, core->cross.set[id]);
      for (Core* core : cores) {
        CrossFlags& f = core->cross;
        if (all == f.delivered[id]) continue;
        f.count[id] += all - f.delivered[id];
        f.delivered[id] = all;
        any = true;
      }
    }
    return any;
  }

  [[noreturn]] void FailLaunch(const std::string& message) const {
    ErrorPlace place;
    place.function = function_.name;
    place.op = *cross_.op;
    place.file = *function_.code.file;
    place.line = cross_.line;
    throw Error(message, place);
  }

  [[noreturn]] void FailDeadlock(const std::vector<std::unique_ptr<Block>>& all) const {
    // Blocks that wait for the same things together.
    std::map<std::string, std::vector<int64_t>> waits;
    std::vector<std::string> order;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string what = all[i]->Blocked();
      if (waits[what].empty()) order.push_back(what);
      waits[what].push_back(static_cast<int64_t>(i));
    }
    std::string s = "deadlock among the cores";
    for (const std::string& what : order) {
      const std::vector<int64_t>& blocks = waits[what];
      s += (what == order.front() ? ": " : "; ");
      s += blocks.size() == 1 ? "block " : "blocks ";
      for (size_t i = 0; i < blocks.size(); ++i) {
        size_t end = i;
        while (end + 1 < blocks.size() && blocks[end + 1] == blocks[end] + 1) ++end;
        s += (i ? ", " : "") + std::to_string(blocks[i]) + (end > i ? "-" + std::to_string(blocks[end]) : "");
        i = end;
      }
      s += ": " + what;
    }
    FailLaunch(s);
  }

  void CheckCrossFlags(const Core& core) const {
    for (int id = 0; id < CrossFlags::kIds; ++id) {
      const CrossFlags& f = core.cross;
      if (f.count[id] == 0 && f.set[id] == f.delivered[id]) continue;
      FailLaunch("cross-core flag " + std::to_string(id) + " of block " + std::to_string(core.block) +
                 (*core.name ? std::string(", ") + core.name + "," : "") +
                 " is left set at the end of the kernel (it leaks into the next one)");
    }
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
    stats_.mad_commands += s.mad_commands;
    stats_.mad_operations += s.mad_operations;
  }

  const CompiledFunction& function_;
  const int64_t grid_;
  const LaunchOptions& options_;
  const GlobalMemory global_;
  const std::vector<uint64_t> arguments_;
  const bool ordered_;
  const DebugInfo cross_;  // of the side that waits for other cores
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> failed_{std::numeric_limits<int64_t>::max()};
  std::atomic<int64_t> first_running_{0};  // ordered_: all lower blocks have stopped
  std::vector<uint8_t> stopped_;
  std::map<int64_t, std::string> texts_;  // of stopped blocks, until their turn to print
  std::mutex mutex_;
  std::condition_variable turn_;
  std::exception_ptr error_;
  LaunchStats stats_;
  BarrierClocks barriers_;
  GmHistory history_;
  std::unique_ptr<TimingLaunch> timing_;
  std::map<std::tuple<std::string, int, int, bool, bool, std::string>, Finding> findings_;
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
      if (tensors.size() > kMostTensors) Refuse(f, program.source_file(), "too many pointer arguments");
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
