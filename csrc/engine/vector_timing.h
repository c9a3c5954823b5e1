// How long a SIMD function takes: instructions enter a window in order and start on the ports out of order, as soon as
// their registers are there; accesses to UB share its banks.
#pragma once

#include <unordered_map>
#include <vector>

#include "code.h"
#include "sub_banks.h"

namespace pto::engine {

enum class VectorPort : uint8_t { kBoth, kFirst, kLoad, kLoadAlone, kStore, kFree };

struct VectorCost {
  int latency = 0, interval = 0;
  VectorPort port = VectorPort::kFree;
  int operations = 0;  // arithmetic ones, of all lanes
};

// Of an instruction with these element types.
VectorCost VectorCostOf(const std::string& op, const Flow& flow);

// What one run of a function took.
struct VectorRun {
  struct Line {
    uint32_t inst;
    int64_t cycles, executions;  // by which this instruction made the function longer
  };
  int64_t cycles = 0;
  int64_t operations = 0;
  std::vector<Line> lines;
};

class VectorTiming {
 public:
  VectorTiming();
  void Begin(const Code& code);
  // Before each instruction; its accesses and barriers follow.
  void Step(const Inst* in);
  void Access(int64_t offset, int64_t bytes, bool write);
  void MemBar(uint8_t first, uint8_t second);
  VectorRun End();

 private:
  enum class Kind : uint8_t { kNothing, kScalar, kLoop, kMove, kVector };
  // Of the instructions of a function.
  struct Costs {
    std::vector<VectorCost> cost;
    std::vector<Kind> kind;
    std::vector<uint8_t> apart;  // accesses UB in pieces that need not follow each other
    uint32_t registers = 0;
  };
  // What is taken in one cycle.
  struct Cycle {
    int64_t at = -1;
    uint8_t ports = 0, writes = 0, loads = 0, stores = 0;
    uint16_t read_banks = 0, written_banks = 0;
    int64_t read_begin = -1;
  };
  struct Piece {
    int64_t offset, bytes;
    bool write;
  };
  // Banks that an access needs, and for how long.
  struct Banks {
    uint16_t mask = 0;
    int cycles = 1;
    int64_t begin = -1;
  };

  const Costs& CostsOf(const Code& code);
  Cycle& At(int64_t cycle);
  void Execute();
  void ExecuteVector(uint32_t index);
  void ExecuteScalarAccess();
  Banks BanksOf(bool apart);
  int64_t StartOnPort(int64_t ready, const VectorCost& cost, int writes);
  int64_t StartOnBanks(int64_t ready, VectorPort port, int interval, int writes, const Banks& banks);
  int64_t Allowed(int number, int64_t start) const { return start > allowed_[number] ? start : allowed_[number]; }
  void Complete(uint32_t index, int64_t cycle);

  static constexpr int kRing = 8192;
  std::unordered_map<const Code*, Costs> costs_;
  std::vector<Cycle> ring_;
  int64_t base_ = 0;  // of the running function in the ring's count of cycles
  const Code* code_ = nullptr;
  const Costs* current_ = nullptr;
  const Inst* pending_ = nullptr;
  std::vector<Piece> pieces_;    // what it accesses
  std::vector<int64_t> ready_;   // by register
  std::vector<int64_t> window_;  // start of the instructions before
  std::vector<uint8_t> looped_;  // by instruction: this loop has run before
  std::vector<VectorRun::Line> lines_;
  SubBanks sub_banks_;
  size_t window_at_ = 0;
  double issue_ = 0;
  int64_t last_[4] = {};     // completion of the accesses of each class
  int64_t allowed_[4] = {};  // start of those behind a barrier
  int64_t end_ = 0;
  int64_t operations_ = 0;
};

}  // namespace pto::engine
