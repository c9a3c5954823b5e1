// The memories of a cube core, and what the cores of a block share.
//
// A pointer into one of them is its byte address.
#pragma once

#include <cstring>
#include <string>

#include "dtypes.h"
#include "memory.h"
#include "monitor.h"

namespace pto::engine {

class Core;

constexpr int64_t kL1Bytes = 512 * 1024;
constexpr int64_t kL0Bytes = 64 * 1024;
constexpr int64_t kL0ScaleBytes = 4 * 1024;
constexpr int64_t kL0cBytes = 256 * 1024;
constexpr int64_t kBiasBytes = 4 * 1024;
constexpr int64_t kFixpipeBytes = 4 * 1024;
constexpr int64_t kUnitBytes = 512;  // of L0C, with one unit flag each

struct MemoryView {
  uint8_t* base = nullptr;
  int64_t bytes = 0;
  const char* name = "";
  Memory id = Memory::kL1;
};

class CubeMemory {
 public:
  // Fresh memories: every byte is the poison.
  void Reset(int poison) {
    uint8_t* p = storage_.Ensure(kTotal);
    std::memset(p, poison, kTotal);
    std::memset(unit_set, 0, sizeof(unit_set));
    for (MemoryView* m : {&l1, &l0a, &l0b, &l0a_scale, &l0b_scale, &l0c, &bias, &fixpipe}) {
      m->base = p;
      p += m->bytes;
    }
  }

  MemoryView l1{nullptr, kL1Bytes, "L1", Memory::kL1};
  MemoryView l0a{nullptr, kL0Bytes, "L0A", Memory::kL0a};
  MemoryView l0b{nullptr, kL0Bytes, "L0B", Memory::kL0b};
  MemoryView l0a_scale{nullptr, kL0ScaleBytes, "L0A_MX", Memory::kL0aScale};
  MemoryView l0b_scale{nullptr, kL0ScaleBytes, "L0B_MX", Memory::kL0bScale};
  MemoryView l0c{nullptr, kL0cBytes, "L0C", Memory::kL0c};
  MemoryView bias{nullptr, kBiasBytes, "the bias table", Memory::kBias};
  MemoryView fixpipe{nullptr, kFixpipeBytes, "the fixpipe buffer", Memory::kFixpipe};

  const MemoryView& Of(Space s) const {
    switch (s) {
      case Space::kLeft:
        return l0a;
      case Space::kRight:
        return l0b;
      case Space::kAcc:
        return l0c;
      case Space::kBias:
        return bias;
      case Space::kScaling:
        return fixpipe;
      default:
        return l1;
    }
  }

  uint8_t unit_set[kL0cBytes / kUnitBytes] = {};  // unit flags: 1 while a result waits for the fixpipe

 private:
  static constexpr int64_t kTotal =
      kL1Bytes + 2 * kL0Bytes + 2 * kL0ScaleBytes + kL0cBytes + kBiasBytes + kFixpipeBytes;
  AlignedBytes storage_;
};

// Flags between the cube core and each of its vector cores (set_intra_block): one counter a side, id and vector core.
struct IntraFlags {
  static constexpr int kIds = 16;  // of a vector core; the cube core calls those of vector core 1 16 to 31
  static constexpr int kMost = 15;
  static constexpr int kVectorCores = 2;
  uint8_t to_vector[kVectorCores][kIds] = {};
  uint8_t to_cube[kVectorCores][kIds] = {};
};

struct BlockShared {
  CubeMemory cube;  // of a block with a cube core
  Core* vector_cores[IntraFlags::kVectorCores] = {};
  IntraFlags intra;
  AlignedBytes packed_a, packed_b;  // operands of a mad
};

}  // namespace pto::engine
