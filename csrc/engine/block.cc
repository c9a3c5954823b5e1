// The cores of a block take turns on one host thread.
#include "block.h"

#include <algorithm>

#include "splitmix.h"

namespace pto::engine {
namespace {

constexpr int64_t kTurn = 64;           // instructions of the scalar unit
constexpr uint64_t kLongestTurn = 256;  // with a seed

}  // namespace

Block::Block(const CompiledFunction& function, const LaunchOptions& options, DrainPolicy& policy, CoreOrder& order,
             const BarrierClocks& barriers, const TimingLaunch* timing)
    : function_(function), options_(options) {
  cores_.push_back(std::make_unique<Core>(function, options, policy, order));
  if (function.vector_side) {
    for (int i = 0; i < IntraFlags::kVectorCores; ++i) {
      cores_.push_back(std::make_unique<Core>(*function.vector_side, options, policy, order));
    }
  }
  workspaces_.resize(cores_.size());
  if (function.core == CoreKind::kCube) shared_ = std::make_unique<BlockShared>();
  if (options.check != Check::kOff) hazards_ = std::make_unique<HazardMonitor>(function, options, barriers);
  if (timing) timing_ = std::make_unique<TimingMonitor>(function, timing->places(), options.timeline);
  if (hazards_ && timing_) both_ = std::make_unique<MonitorPair>(*hazards_, *timing_);
}

Monitor* Block::Watcher() const {
  if (both_) return both_.get();
  return hazards_ ? static_cast<Monitor*>(hazards_.get()) : timing_.get();
}

void Block::Reset(int64_t index, int64_t grid, const GlobalMemory& global, const std::vector<uint64_t>& arguments) {
  static const char* const kVectorNames[] = {"AIV0", "AIV1"};
  index_ = index;
  finished_ = false;
  done_.assign(cores_.size(), 0);
  random_ = options_.interleaving_seed ? options_.interleaving_seed * UINT64_C(0x9E3779B97F4A7C15) + index : 0;
  if (shared_) {
    shared_->cube.Reset(options_.poison_byte);
    shared_->intra = IntraFlags();
  }
  if (hazards_) hazards_->Reset(index);
  if (timing_) timing_->Reset(index);
  const bool mixed = cores_.size() > 1;
  for (size_t i = 0; i < cores_.size(); ++i) {
    Seat seat;
    seat.block = index, seat.grid = grid, seat.shared = shared_.get(), seat.monitor = Watcher();
    if (mixed && i == 0) seat.name = "AIC";
    if (i > 0) {
      seat.sub_block = static_cast<int>(i) - 1, seat.sub_blocks = IntraFlags::kVectorCores;
      seat.name = kVectorNames[i - 1];
      shared_->vector_cores[i - 1] = cores_[i].get();
    }
    cores_[i]->Reset(seat, global, arguments, &workspaces_[i]);
  }
}

uint64_t Block::Random() { return NextRandom(&random_); }

bool Block::Run() {
  if (cores_.size() == 1) {
    finished_ = cores_[0]->Run() == Core::State::kFinished;
    return finished_;
  }
  const size_t n = cores_.size();
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  for (bool moved = true; moved && !finished_;) {
    moved = false;
    if (options_.interleaving_seed) {
      for (size_t i = n - 1; i > 0; --i) std::swap(order[i], order[Random() % (i + 1)]);
    }
    for (size_t i : order) {
      if (done_[i]) continue;
      const int64_t turn = options_.interleaving_seed ? static_cast<int64_t>(1 + Random() % kLongestTurn) : kTurn;
      const Core::State state = cores_[i]->RunFor(turn);
      moved |= cores_[i]->Moved();
      if (state == Core::State::kFinished) done_[i] = 1, moved = true;
    }
    finished_ = std::all_of(done_.begin(), done_.end(), [](uint8_t d) { return d != 0; });
  }
  return finished_;
}

void Block::CheckEnd() const {
  for (const auto& core : cores_) core->CheckEnd();
  if (shared_) CheckShared();
}

void Block::CheckShared() const {
  ErrorPlace place;
  place.function = function_.name;
  place.file = *function_.code.file;
  place.line = function_.line;
  place.core = index_;
  const IntraFlags& f = shared_->intra;
  for (int v = 0; v < IntraFlags::kVectorCores; ++v) {
    for (int id = 0; id < IntraFlags::kIds; ++id) {
      const std::string vector_core = "AIV" + std::to_string(v);
      const char* tail = " is left set at the end of the kernel (it leaks into the next one)";
      if (f.to_vector[v][id]) {
        throw Error("intra-block flag AIC->" + vector_core + " " + std::to_string(id) + tail, place);
      }
      if (f.to_cube[v][id]) {
        throw Error("intra-block flag " + vector_core + "->AIC " + std::to_string(id) + tail, place);
      }
    }
  }
  for (size_t u = 0; u < sizeof(shared_->cube.unit_set); ++u) {
    if (!shared_->cube.unit_set[u]) continue;
    throw Error(
        "the unit flag of L0C bytes " + std::to_string(u * kUnitBytes) + " to " +
            std::to_string((u + 1) * kUnitBytes - 1) +
            " is left set at the end of the kernel: no mte_l0c_* with unit_flag=\"check_and_clear\" has read them",
        place);
  }
}

std::string Block::Blocked() const {
  if (cores_.size() == 1) return finished_ ? "has ended" : cores_[0]->Blocked();
  std::string s;
  for (size_t i = 0; i < cores_.size(); ++i) {
    s +=
        (s.empty() ? "" : "; ") + std::string(cores_[i]->name) + ": " + (done_[i] ? "has ended" : cores_[i]->Blocked());
  }
  return s;
}

void Block::FailDeadlock() const {
  if (cores_.size() == 1) cores_[0]->FailDeadlock();
  for (size_t i = 0; i < cores_.size(); ++i) {
    if (!done_[i]) cores_[i]->FailBlocked("deadlock: " + Blocked());
  }
  throw Error("deadlock in a block that has ended");
}

std::string Block::Text() const {
  std::string s;
  for (const auto& core : cores_) s += core->text;
  return s;
}

void Block::AddStats(LaunchStats* stats) const {
  for (const auto& core : cores_) core->AddStats(stats);
}

}  // namespace pto::engine
