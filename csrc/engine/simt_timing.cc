#include "simt_timing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "timing_figures.h"

namespace pto::engine {
namespace {

constexpr int64_t kSector = static_cast<int64_t>(figure::kGmSectorBytes);

bool Active(const Context& c, int thread) { return c.mask.all || c.mask.active[thread]; }

// The tensor that an address of the host belongs to, and the offset in it; 0 and the address itself: in none.
std::pair<uint32_t, int64_t> Locate(const Context& c, int64_t address) {
  for (uint32_t t = 0; t < c.n_tensors; ++t) {
    const int64_t begin = reinterpret_cast<intptr_t>(c.tensors[t].data);
    if (c.tensors[t].extent >= 0 && address >= begin && address < begin + c.tensors[t].extent) {
      return {t + 1, address - begin};
    }
  }
  return {0, address};
}

}  // namespace

const SimtTiming::Costs& SimtTiming::CostsOf(const Code& code) {
  static const std::unordered_set<std::string> kSpecial = {"exp", "log", "sqrt", "div", "pow", "sin", "cos", "rem"};
  auto [known, fresh] = costs_.try_emplace(&code);
  if (!fresh) return known->second;
  for (size_t i = 0; i < code.insts.size(); ++i) {
    const std::string op = code.debug[i].op ? *code.debug[i].op : "";
    const bool nothing = code.insts[i].counter == kCountNothing;
    known->second.latency.push_back(static_cast<float>(nothing              ? 0
                                                       : kSpecial.count(op) ? figure::kSimtSpecial
                                                                            : figure::kSimtInstruction));
  }
  return known->second;
}

void SimtTiming::Begin(const Code& code) {
  code_ = &code;
  current_ = &CostsOf(code);
  std::fill(std::begin(time_), std::end(time_), 0.0);
  issued_ = ub_ = 0;
  warps_ = (code.threads + kWarp - 1) / kWarp;
  spent_.assign(code.insts.size(), 0);
  executed_.assign(code.insts.size(), 0);
  atomics_.clear();
  pending_.clear();
}

void SimtTiming::Step(const Context& c, const Inst* in) {
  const size_t i = static_cast<size_t>(in - code_->insts.data());
  if (!pending_.empty()) WaitForOperands(c, in);
  const double latency = current_->latency[i];
  if (latency == 0) return;
  ++executed_[i];
  spent_[i] += latency;
  ForWarps(c, [&](int warp, int, int) {
    time_[warp] += latency;
    issued_ += 1;
  });
}

void SimtTiming::WaitForOperands(const Context& c, const Inst* in) {
  const Flow& f = FlowOf(in);
  const size_t index = static_cast<size_t>(in - code_->insts.data());
  const uint32_t* registers = code_->registers.data() + f.first;
  for (size_t p = 0; p < pending_.size();) {
    const uint32_t slot = pending_[p].slot;
    const bool read =
        std::find(registers + f.written, registers + f.written + f.read, slot) != registers + f.written + f.read;
    const bool written = std::find(registers, registers + f.written, slot) != registers + f.written;
    double longest = 0;
    if (read) {
      ForWarps(c, [&](int warp, int, int) {
        const double wait = pending_[p].ready[warp] - time_[warp];
        if (wait > 0) time_[warp] += wait, longest = std::max(longest, wait);
      });
      spent_[index] += longest;
      if (longest > 0) executed_[index] = std::max<int64_t>(executed_[index], 1);
    }
    if (written) {
      pending_[p] = pending_.back();
      pending_.pop_back();
    } else {
      ++p;
    }
  }
}

SimtTiming::Pending& SimtTiming::PendingFor(uint32_t slot) {
  for (Pending& p : pending_) {
    if (p.slot == slot) return p;
  }
  pending_.push_back({});
  pending_.back().slot = slot;
  return pending_.back();
}

void SimtTiming::Lanes(const Context& c, const Inst* in, const LaneAccess& a, std::vector<GmSector>* moved) {
  const size_t index = static_cast<size_t>(in - code_->insts.data());
  const double counted = current_->latency[index];  // by Step
  double slowest = counted;
  // Nothing waits for a store or for an atomic whose result is not used.
  const bool waits = a.gm && (a.access == Access::kRead || (a.access == Access::kAtomic && in->c));
  const Flow& flow = FlowOf(in);
  Pending* pending = waits && flow.written ? &PendingFor(code_->registers[flow.first]) : nullptr;
  std::vector<int64_t> words;
  ForWarps(c, [&](int warp, int lo, int hi) {
    double latency = counted;
    words.clear();
    if (!a.gm) {
      // Atomics on one place happen one after the other, other accesses together.
      sub_banks_.Begin();
      for (int i = lo; i < hi; ++i) {
        if (Active(c, i)) sub_banks_.Add(a.addresses[i], a.bytes, a.access != Access::kAtomic);
      }
      const int conflicts = sub_banks_.cycles();
      if (conflicts == 0) return;
      latency = std::max(figure::kSimtUb, figure::kSimtUbBase + conflicts);
      ub_ += conflicts;
    } else {
      uint32_t tensor = a.tensor;
      for (int i = lo; i < hi; ++i) {
        if (!Active(c, i)) continue;
        int64_t offset = a.addresses[i];
        if (a.tensor == 0) {
          std::tie(tensor, offset) = Locate(c, reinterpret_cast<intptr_t>(a.base) + a.addresses[i]);
        }
        if (a.access == Access::kAtomic) {
          const double cycles = in->c ? figure::kSimtGmAtomicReturn : figure::kSimtGmAtomic;
          atomics_[static_cast<uint64_t>(tensor) << 48 | static_cast<uint64_t>(offset / kSector)] += cycles;
        }
        for (int64_t s = offset / kSector; s <= (offset + a.bytes - 1) / kSector; ++s) {
          if (words.empty() || words.back() != s) words.push_back(s);
        }
      }
      if (words.empty()) return;
      if (!std::is_sorted(words.begin(), words.end())) std::sort(words.begin(), words.end());
      words.erase(std::unique(words.begin(), words.end()), words.end());
      for (int64_t s : words) moved->push_back({tensor, s});
      if (waits) latency = pending ? figure::kSimtUb : figure::kSimtGm;
      if (pending) pending->ready[warp] = time_[warp] - counted + figure::kSimtGm;
      issued_ += static_cast<double>(words.size() - 1);
    }
    time_[warp] += latency - counted;
    slowest = std::max(slowest, latency);
  });
  spent_[index] += slowest - counted;
}

void SimtTiming::SyncThreads() {
  const double last = *std::max_element(time_, time_ + warps_);
  std::fill(time_, time_ + warps_, last);
}

SimtRun SimtTiming::End() {
  for (const Pending& p : pending_) {
    for (int w = 0; w < warps_; ++w) time_[w] = std::max(time_[w], p.ready[w]);
  }
  double cycles = *std::max_element(time_, time_ + std::max(1, warps_));
  cycles = std::max({cycles, issued_ / figure::kSimtSchedulers, ub_});
  SimtRun run;
  for (const auto& [sector, taken] : atomics_) {
    if (taken < run.hot_cycles || (taken == run.hot_cycles && sector > run.hot_sector)) continue;
    run.hot_sector = sector, run.hot_cycles = taken;
  }
  cycles = std::max(cycles, run.hot_cycles);
  run.cycles = static_cast<int64_t>(figure::kVectorLaunch + std::ceil(cycles) + figure::kVectorDrain);
  double spent = 0;
  for (const double s : spent_) spent += s;
  for (uint32_t i = 0; i < spent_.size(); ++i) {
    if (executed_[i]) {
      run.lines.push_back({i, static_cast<int64_t>(std::llround(spent_[i] * cycles / spent)), executed_[i]});
    }
  }
  return run;
}

}  // namespace pto::engine
