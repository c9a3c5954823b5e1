#include "vector_timing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "timing_figures.h"

namespace pto::engine {
namespace {

constexpr int64_t kUbBlock = 32;  // bytes of a bank in one cycle
constexpr int kUbGroups = 8;      // of two banks

enum TypeClass : uint8_t { kAnyType, kFloatType, kIntegerType, k16BitType, k32BitInteger };
constexpr const char* kTypeNames[] = {"any", "floats", "integers", "16-bit floats",
                                      "with 32-bit integers or 8-bit floats of f32"};
constexpr const char* kPortNames[] = {"either of two", "the first of two", "load", "load, both ports", "store", "none"};

struct CostRow {
  const char* op;
  TypeClass types;
  VectorCost cost;
  const char *source, *certainty;
};

constexpr VectorPort kBoth = VectorPort::kBoth, kFirst = VectorPort::kFirst, kLoad = VectorPort::kLoad,
                     kLoadAlone = VectorPort::kLoadAlone, kStore = VectorPort::kStore, kFree = VectorPort::kFree;
const CostRow kRows[] = {
#define PTO_VECTOR_COST(op, types, latency, interval, port, source, certainty) \
  {#op, types, {latency, interval, port, 0}, source, certainty},
#include "vector_costs_table.h"
#undef PTO_VECTOR_COST
};

bool Matches(TypeClass types, const Flow& f) {
  const DType t = f.operand != DType::kNone ? f.operand : f.result;
  const auto integer = [](DType d) { return IsInteger(d) && ByteSize(d) >= 4; };
  const auto narrow_float = [](DType d) { return !IsInteger(d) && ByteSize(d) == 1; };
  switch (types) {
    case kAnyType:
      return true;
    case kFloatType:
      return IsFloat(t);
    case kIntegerType:
      return IsInteger(t);
    case k16BitType:
      return IsFloat(t) && ByteSize(t) == 2;
    case k32BitInteger:
      return integer(f.operand) || integer(f.result) || (narrow_float(f.operand) && f.result == DType::kF32) ||
             (narrow_float(f.result) && f.operand == DType::kF32);
  }
  return false;
}

int OperationsOf(const std::string& op, const Flow& f) {
  static const std::unordered_set<std::string> kOne = {
      "vadd",  "vsub", "vmul", "vdiv",  "vmax",  "vmin",  "vadds", "vmuls",  "vmaxs",  "vmins",  "vabs",  "vneg",
      "vrelu", "vexp", "vln",  "vsqrt", "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"};
  static const std::unordered_set<std::string> kTwo = {"vmula", "vmadd", "vaxpy", "vexpdif", "vlrelu", "vprelu"};
  const DType t = f.operand != DType::kNone ? f.operand : f.result;
  const int lanes = t == DType::kNone ? 0 : 256 / std::max(1, ByteSize(t));
  return kOne.count(op) ? lanes : kTwo.count(op) ? 2 * lanes : 0;
}

int64_t Ceil(double cycles) { return static_cast<int64_t>(std::ceil(cycles - 1e-9)); }

}  // namespace

VectorCost VectorCostOf(const std::string& op, const Flow& flow) {
  for (const CostRow& row : kRows) {
    if ((op == row.op || std::string("other") == row.op) && Matches(row.types, flow)) {
      VectorCost cost = row.cost;
      cost.operations = OperationsOf(op, flow);
      return cost;
    }
  }
  return {};
}

std::vector<VectorCostFigure> VectorCostFigures() {
  std::vector<VectorCostFigure> figures;
  for (const CostRow& row : kRows) {
    figures.push_back({row.op, kTypeNames[row.types], static_cast<double>(row.cost.latency),
                       static_cast<double>(row.cost.interval), kPortNames[static_cast<int>(row.cost.port)], row.source,
                       row.certainty});
  }
  return figures;
}

VectorTiming::VectorTiming() : ring_(kRing), window_(static_cast<size_t>(figure::kVectorWindow), 0) {}

const VectorTiming::Costs& VectorTiming::CostsOf(const Code& code) {
  auto [known, fresh] = costs_.try_emplace(&code);
  Costs& costs = known->second;
  if (!fresh) return costs;
  for (uint32_t r : code.registers) costs.registers = std::max(costs.registers, r + 1);
  for (size_t i = 0; i < code.insts.size(); ++i) {
    static const std::string kNoName;
    const std::string& op = code.debug[i].op ? *code.debug[i].op : kNoName;
    const Inst& in = code.insts[i];
    const bool control = op.empty() || op == "for" || op == "if" || op == "while" || op == "yield";
    const bool registers = code.flow[i].written + code.flow[i].read > 0;
    Kind kind = Kind::kVector;
    if (op == "for" && in.counter == kCountScalar && in.jump > 0) {
      kind = Kind::kLoop;
    } else if (!registers) {
      kind = in.counter == kCountNothing ? Kind::kNothing : Kind::kScalar;
    } else if (control || in.counter == kCountNothing) {
      kind = Kind::kMove;
    }
    costs.kind.push_back(kind);
    costs.cost.push_back(kind == Kind::kVector ? VectorCostOf(op, code.flow[i]) : VectorCost());
    costs.apart.push_back(op == "vgather2" || op == "vgather2_bc" || op == "vgatherb" || op == "vscatter");
  }
  return costs;
}

void VectorTiming::Begin(const Code& code) {
  code_ = &code;
  current_ = &CostsOf(code);
  base_ += end_ + kRing;
  pending_ = nullptr;
  pieces_.clear();
  ready_.assign(current_->registers, 0);
  looped_.assign(code.insts.size(), 0);
  lines_.assign(code.insts.size(), {});
  std::fill(window_.begin(), window_.end(), 0);
  std::fill(std::begin(last_), std::end(last_), 0);
  std::fill(std::begin(allowed_), std::end(allowed_), 0);
  window_at_ = 0;
  issue_ = 0;
  end_ = operations_ = 0;
}

void VectorTiming::Step(const Inst* in) {
  if (pending_) Execute();
  pending_ = in;
}

void VectorTiming::Access(int64_t offset, int64_t bytes, bool write) { pieces_.push_back({offset, bytes, write}); }

void VectorTiming::MemBar(uint8_t first, uint8_t second) {
  int64_t done = 0;
  for (int i = 0; i < 4; ++i) {
    if (first >> i & 1) done = std::max(done, last_[i]);
  }
  for (int i = 0; i < 4; ++i) {
    if (second >> i & 1) allowed_[i] = std::max(allowed_[i], done);
  }
}

VectorRun VectorTiming::End() {
  if (pending_) Execute();
  pending_ = nullptr;
  VectorRun run;
  run.cycles = static_cast<int64_t>(figure::kVectorLaunch + figure::kVectorDrain) + std::max(end_, Ceil(issue_));
  run.operations = operations_;
  for (uint32_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].executions) run.lines.push_back({i, lines_[i].cycles, lines_[i].executions});
  }
  return run;
}

void VectorTiming::Execute() {
  const uint32_t index = static_cast<uint32_t>(pending_ - code_->insts.data());
  switch (current_->kind[index]) {
    case Kind::kNothing:
      break;
    case Kind::kScalar:
      issue_ += figure::kVectorScalar;
      if (!pieces_.empty()) ExecuteScalarAccess();
      break;
    case Kind::kLoop:
      issue_ += looped_[index] ? figure::kVectorLoopAgain : figure::kVectorLoop;
      looped_[index] = 1;
      break;
    case Kind::kMove: {
      const Flow& f = code_->flow[index];
      int64_t ready = 0;
      for (uint32_t i = 0; i < f.read; ++i) ready = std::max(ready, ready_[code_->registers[f.first + f.written + i]]);
      for (uint32_t i = 0; i < f.written; ++i) ready_[code_->registers[f.first + i]] = ready;
      break;
    }
    case Kind::kVector:
      ExecuteVector(index);
      break;
  }
  pieces_.clear();
}

// The unit that computes addresses waits for what it loads.
void VectorTiming::ExecuteScalarAccess() {
  const bool write = pieces_.front().write;
  const int number = write ? 3 : 2;
  static const int kLatency = VectorCostOf(write ? "vsts" : "vlds", Flow()).latency;
  const int64_t start = Allowed(number, Ceil(issue_));
  last_[number] = std::max(last_[number], start + kLatency);
  issue_ = std::max(issue_, static_cast<double>(write ? start : start + kLatency));
}

void VectorTiming::ExecuteVector(uint32_t index) {
  const Flow& f = code_->flow[index];
  const VectorCost& cost = current_->cost[index];
  const uint32_t* registers = code_->registers.data() + f.first;
  issue_ = std::max(issue_, static_cast<double>(window_[window_at_])) + 1.0 / figure::kVectorIssue;
  int64_t start = static_cast<int64_t>(issue_);
  for (uint32_t i = 0; i < f.read; ++i) start = std::max(start, ready_[registers[f.written + i]]);
  int64_t complete = start;
  if (cost.port != VectorPort::kFree) {
    const int writes = std::min<int>(f.written, figure::kVectorWrites);
    if (cost.port >= VectorPort::kLoad) {
      const bool store = cost.port == VectorPort::kStore;
      const int number = store ? 1 : 0;
      const Banks banks = BanksOf(current_->apart[index] != 0);
      const int interval = std::max(cost.interval, banks.cycles);
      start = StartOnBanks(Allowed(number, start), cost.port, interval, writes, banks);
      complete = start + cost.latency + interval - cost.interval;
      last_[number] = std::max(last_[number], complete);
    } else {
      start = StartOnPort(start, cost, writes);
      complete = start + cost.latency;
    }
    operations_ += cost.operations;
  }
  const int64_t forwarded = cost.port == VectorPort::kFree
                                ? start
                                : std::max(start + 1, complete - static_cast<int64_t>(figure::kVectorForwarding));
  for (uint32_t i = 0; i < f.written; ++i) ready_[registers[i]] = forwarded;
  window_[window_at_] = start;
  if (++window_at_ == window_.size()) window_at_ = 0;
  Complete(index, complete);
}

void VectorTiming::Complete(uint32_t index, int64_t cycle) {
  ++lines_[index].executions;
  if (cycle <= end_) return;
  lines_[index].cycles += cycle - end_;
  end_ = cycle;
}

VectorTiming::Cycle& VectorTiming::At(int64_t cycle) {
  const int64_t at = base_ + cycle;
  Cycle& c = ring_[static_cast<size_t>(at % kRing)];
  if (c.at != at) {
    c = Cycle();
    c.at = at;
  }
  return c;
}

int64_t VectorTiming::StartOnPort(int64_t ready, const VectorCost& cost, int writes) {
  const int ports = cost.port == VectorPort::kFirst ? 1 : 2;
  for (int64_t t = ready;; ++t) {
    if (At(t).writes + writes > figure::kVectorWrites) continue;
    for (int p = ports - 1; p >= 0; --p) {  // the first one is left to those that need it
      bool free = true;
      for (int i = 0; i < cost.interval && free; ++i) free = !(At(t + i).ports >> p & 1);
      if (!free) continue;
      for (int i = 0; i < cost.interval; ++i) At(t + i).ports |= static_cast<uint8_t>(1 << p);
      At(t).writes = static_cast<uint8_t>(At(t).writes + writes);
      return t;
    }
  }
}

VectorTiming::Banks VectorTiming::BanksOf(bool apart) {
  Banks banks;
  if (pieces_.empty()) return banks;
  banks.begin = pieces_.front().offset;
  if (apart) {
    sub_banks_.Begin();
    for (const Piece& p : pieces_) sub_banks_.Add(p.offset, p.bytes, true);
    banks.cycles = sub_banks_.cycles();
    banks.mask = 0xFFFF;
    return banks;
  }
  int count[kUbGroups] = {};
  int64_t before = -1;
  for (const Piece& p : pieces_) {
    for (int64_t b = p.offset / kUbBlock; b <= (p.offset + p.bytes - 1) / kUbBlock; ++b) {
      if (b == before) continue;
      before = b;
      banks.mask |= static_cast<uint16_t>(1 << (b % kUbGroups * 2 + b / kUbGroups % 2));
      banks.cycles = std::max(banks.cycles, ++count[b % kUbGroups]);
    }
  }
  return banks;
}

int64_t VectorTiming::StartOnBanks(int64_t ready, VectorPort port, int interval, int writes, const Banks& banks) {
  const bool store = port == VectorPort::kStore;
  const uint8_t loads = port == VectorPort::kLoadAlone ? 2 : 1;
  const auto fits = [&](const Cycle& c) {
    if (c.loads + c.stores + (store ? 1 : loads) > figure::kUbLoadPorts) return false;
    if (store) return c.stores < figure::kUbStorePorts && !(c.read_banks & banks.mask);
    if (c.written_banks & banks.mask) return false;
    return !(c.read_banks & banks.mask) || c.read_begin == banks.begin;
  };
  for (int64_t t = ready;; ++t) {
    if (At(t).writes + writes > figure::kVectorWrites) continue;
    int i = 0;
    while (i < interval && fits(At(t + i))) ++i;
    if (i < interval) {
      t += i;
      continue;
    }
    for (i = 0; i < interval; ++i) {
      Cycle& c = At(t + i);
      if (store) {
        ++c.stores;
        c.written_banks |= banks.mask;
      } else {
        c.loads = static_cast<uint8_t>(c.loads + loads);
        c.read_banks |= banks.mask;
        c.read_begin = banks.begin;
      }
    }
    At(t).writes = static_cast<uint8_t>(At(t).writes + writes);
    return t;
  }
}

}  // namespace pto::engine
