// Copies that fill L1 or leave it as bytes: GM to L1 (plain and with a change of layout), L1 fill, L1 to and from UB,
// to the bias table and to the fixpipe buffer.
#include <cstring>

#include "float16.h"
#include "fractal.h"
#include "transfer.h"

namespace pto::engine {
namespace {

// --- mte_gm_l1: bytes, start to start ---

bool RunGmL1(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE2");
  const MemoryView& l1 = core.shared->cube.l1;
  const Transfer t = UnpackTransfer(c);
  if (!Begin(core, u, t)) return true;
  const bool compact = Compact(t, t.rows.dst);
  ForRows(t, [&](int64_t src, int64_t dst, int64_t row) {
    const int64_t begin = compact ? dst % kBlock : 0;
    const int64_t total = compact && row + 1 < t.rows.count ? t.len : RoundUp(begin + t.len, kBlock) - begin;
    uint8_t* to = u.In(l1, t.dst, dst, total, compact && row > 0 ? 1 : kBlock, Access::kWrite);
    std::memcpy(to, u.context.Gm(u.in, t.src, src, t.len, Access::kRead, c.inst->e), static_cast<size_t>(t.len));
    // The rest of the last block is not specified.
    std::memset(to + t.len, core.options().poison_byte, static_cast<size_t>(total - t.len));
    core.dma_bytes += t.len;
  });
  return true;
}

// --- mte_gm_l1_frac: rows n and columns d of a matrix become fractals ---

struct Frac {
  bool columns_first = false;  // dn2nz: the source has d outside
  int element = 1;
};

bool RunGmL1Frac(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE2");
  const Frac& f = DetailsOf<Frac>(core, c);
  const uint64_t* v = c.values;
  const int64_t n_value = u.Field("n", v[2], 0, 65535), d_value = u.Field("d", v[3], 0, (1 << 21) - 1);
  const int64_t inner = u.Field("the inner source stride", v[4], 0, (INT64_C(1) << 40) - 1);
  const int64_t outer = u.Field("the outer source stride", v[5], 0, (INT64_C(1) << 40) - 1);
  const int64_t groups = u.Field("the group count", v[6], 0, 65535);
  const int64_t loop2 = u.Field("loop2", v[7], 0, 65535), loop3 = u.Field("loop3", v[8], 0, 65535);
  const int64_t loop4 = u.Field("loop4", v[9], 0, 65535);
  const bool small_c0 = v[10] != 0;
  ++core.dma_commands;
  const MemoryView& l1 = core.shared->cube.l1;
  const int64_t element = f.element;
  // Small C0: an L1 row has 4 elements, the rows follow each other without gaps.
  if (small_c0 && d_value > 4) u.Fail("small C0 takes at most 4 columns, d is " + std::to_string(d_value));
  const int64_t c0 = small_c0 ? 4 : kC0Bytes / element;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t base = g * loop4 * kC0Bytes;
    if (small_c0) {
      const int64_t total = RoundUp(n_value * c0 * element, kC0Bytes);
      std::memset(u.In(l1, v[1], base, total, kBlock, Access::kWrite), 0, static_cast<size_t>(total));
    }
    auto place = [&](int64_t n, int64_t d1) {
      if (small_c0) return u.In(l1, v[1], base + n * c0 * element, c0 * element, 1, Access::kWrite);
      return u.In(l1, v[1], base + (d1 * loop3 + n * loop2) * kC0Bytes, kC0Bytes, kBlock, Access::kWrite);
    };
    if (!f.columns_first) {
      for (int64_t n = 0; n < n_value && d_value > 0; ++n) {
        const uint8_t* from =
            u.context.Gm(u.in, v[0], g * outer + n * inner, d_value * element, Access::kRead, element);
        for (int64_t d = 0; d < d_value; d += c0) {
          const int64_t bytes = std::min(c0, d_value - d) * element;
          uint8_t* to = place(n, d / c0);
          std::memcpy(to, from + d * element, static_cast<size_t>(bytes));
          std::memset(to + bytes, 0, static_cast<size_t>(c0 * element - bytes));
        }
      }
    } else {
      for (int64_t d = 0; d < d_value && n_value > 0; ++d) {
        const uint8_t* from =
            u.context.Gm(u.in, v[0], g * outer + d * inner, n_value * element, Access::kRead, element);
        const bool last = d + 1 == d_value;
        for (int64_t n = 0; n < n_value; ++n) {
          uint8_t* to = place(n, d / c0) + d % c0 * element;
          std::memcpy(to, from + n * element, static_cast<size_t>(element));
          if (last) std::memset(to + element, 0, static_cast<size_t>((c0 - 1 - d % c0) * element));
        }
      }
    }
    core.dma_bytes += n_value * d_value * element;
  }
  return true;
}

// --- raw_fill_l1: a pattern in blocks of 32 bytes ---

struct RawFill {
  int bytes = 2;  // of the pattern
};

bool RunFill(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE2");
  const RawFill& f = DetailsOf<RawFill>(core, c);
  const uint64_t* v = c.values;
  const int64_t offset = static_cast<int64_t>(v[1]);
  if (offset < 0) u.Fail("the byte offset is " + std::to_string(offset));
  const int64_t repeats = u.Field("repeat_times", v[3], 0, 32767), blocks = u.Field("block_num_32b", v[4], 0, 32767);
  const int64_t gap = u.Field("dst_gap_32b", v[5], 0, 32767);
  ++core.dma_commands;
  const uint32_t pattern = static_cast<uint32_t>(v[2]);
  for (int64_t r = 0; r < repeats; ++r) {
    const int64_t bytes = blocks * kBlock;
    uint8_t* to = u.In(core.shared->cube.l1, v[0], offset + r * (blocks + gap) * kBlock, bytes, kBlock, Access::kWrite);
    for (int64_t i = 0; i < bytes; i += f.bytes) std::memcpy(to + i, &pattern, static_cast<size_t>(f.bytes));
  }
  return true;
}

// --- L1 and UB: lengths and gaps in blocks of 32 bytes, a gap runs from the end of a burst to the start of the next
// ---

// f(source offset, destination offset, bytes) for each burst.
template <class F>
void ForBursts(const CommandUnit& u, const Transfer& t, F f) {
  const int64_t len = u.Field("the burst length", static_cast<uint64_t>(t.len), 0, 65535) * kBlock;
  u.Field("the burst count", static_cast<uint64_t>(t.rows.count), 0, 4095);
  u.Field("the source gap", static_cast<uint64_t>(t.rows.src), 0, 65535);
  u.Field("the destination gap", static_cast<uint64_t>(t.rows.dst), 0, 65535);
  if (len == 0) return;
  for (int64_t r = 0; r < t.rows.count; ++r) {
    f(r * (len + t.rows.src * kBlock), r * (len + t.rows.dst * kBlock), len);
  }
}

bool RunUbL1(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE3");
  const Transfer t = UnpackTransfer(c);
  ++core.dma_commands;
  ForBursts(u, t, [&](int64_t src, int64_t dst, int64_t len) {
    const uint8_t* from = u.context.Ub(u.in, t.src, src, len, kBlock, Access::kRead);
    std::memcpy(u.In(core.shared->cube.l1, t.dst, dst, len, kBlock, Access::kWrite), from, static_cast<size_t>(len));
    core.dma_bytes += len;
  });
  return true;
}

// Into the UB of vector core 0. Outer loops step in bytes.
bool RunL1Ub(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE1");
  const Transfer t = UnpackTransfer(c);
  if (!Begin(core, u, t)) return true;
  const Context& target = core.shared->vector_cores[0]->scalar();
  const MemoryView ub{target.ub, target.ub_bytes, "UB of AIV0:", Memory::kUb0};
  Transfer outer = t;
  outer.rows = {1, 0, 0};
  ForRows(outer, [&](int64_t src_base, int64_t dst_base, int64_t) {
    ForBursts(u, t, [&](int64_t src, int64_t dst, int64_t len) {
      const uint8_t* from = u.In(core.shared->cube.l1, t.src, src_base + src, len, kBlock, Access::kRead);
      std::memcpy(u.In(ub, t.dst, dst_base + dst, len, kBlock, Access::kWrite), from, static_cast<size_t>(len));
      core.dma_bytes += len;
    });
  });
  return true;
}

// --- to the bias table: 32-byte units of the source, widened to f32 on the way from 16-bit floats ---

struct BiasCopy {
  DType source = DType::kF32;
};

bool RunL1Bias(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE1");
  const DType source = DetailsOf<BiasCopy>(core, c).source;
  const Transfer t = UnpackTransfer(c);
  const int64_t widening = ByteSize(source) == 2 ? 2 : 1;
  ++core.dma_commands;
  const CubeMemory& m = core.shared->cube;
  ForBursts(u, t, [&](int64_t src, int64_t dst, int64_t len) {
    const uint8_t* from = u.In(m.l1, t.src, src, len, kBlock, Access::kRead);
    uint8_t* to = u.In(m.bias, t.dst, dst * widening, len * widening, dst ? kBlock : 64, Access::kWrite);
    if (widening == 1) {
      std::memcpy(to, from, static_cast<size_t>(len));
    } else {
      for (int64_t i = 0; i < len / 2; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + 2 * i, 2);
        const float x = source == DType::kF16 ? ToFloat(F16{bits}) : ToFloat(BF16{bits});
        std::memcpy(to + 4 * i, &x, 4);
      }
    }
    core.dma_bytes += len;
  });
  return true;
}

// --- to the fixpipe buffer: lengths and destination gaps in 64 bytes, source gaps in 32 ---

bool RunL1Fixpipe(Core& core, const Command& c) {
  CommandUnit u(core, c, "FIX");
  const Transfer t = UnpackTransfer(c);
  constexpr int64_t kUnit = 64;
  const int64_t len = u.Field("the burst length", static_cast<uint64_t>(t.len), 0, 65535) * kUnit;
  const int64_t count = u.Field("the burst count", static_cast<uint64_t>(t.rows.count), 0, 4095);
  const int64_t src_gap = u.Field("the source gap", static_cast<uint64_t>(t.rows.src), 0, 65535) * kBlock;
  const int64_t dst_gap = u.Field("the destination gap", static_cast<uint64_t>(t.rows.dst), 0, 65535) * kUnit;
  ++core.dma_commands;
  const CubeMemory& m = core.shared->cube;
  for (int64_t r = 0; r < count && len; ++r) {
    const uint8_t* from = u.In(m.l1, t.src, r * (len + src_gap), len, kBlock, Access::kRead);
    std::memcpy(u.In(m.fixpipe, t.dst, r * (len + dst_gap), len, kUnit, Access::kWrite), from,
                static_cast<size_t>(len));
    core.dma_bytes += len;
  }
  return true;
}

// --- compilation ---

// Pointers of the two spaces, then integers.
std::vector<uint32_t> Slots(Builder& b, const Op& op, Space from, Space to, size_t operands, bool same_width = true) {
  b.ExpectCounts(op, operands, 0);
  ExpectSpace(b, op.operands[0], from);
  ExpectSpace(b, op.operands[1], to);
  if (same_width) {
    b.Expect(ByteSize(b.Type(op.operands[0]).dtype) == ByteSize(b.Type(op.operands[1]).dtype),
             "source and destination elements differ in width");
  }
  for (size_t i = 2; i < operands; ++i) b.ExpectInteger(op.operands[i]);
  return OperandSlots(b, op.operands);
}

struct NoDetails {};

template <CommandFn kRun, Pipe kPipe, Space kFrom, Space kTo, bool kLoops>
void CompileTransfer(Builder& b, const Op& op) {
  if (kTo == Space::kUb) b.Expect(b.scope().mixed, "a kernel for cube cores has no UB");
  if (kFrom == Space::kUb) b.Expect(b.scope().mixed, "a kernel for vector cores has no L1");
  const int64_t loops = kLoops ? b.IntegerAttribute(op, "loops", 0) : 0;
  b.Expect(loops >= 0 && loops <= kMaxLoops, std::to_string(loops) + " outer loops");
  const std::vector<uint32_t> slots =
      Slots(b, op, kFrom, kTo, static_cast<size_t>(6 + 3 * loops), kTo != Space::kScaling);
  Inst& in = EmitCommand(b, &IssueCommand<kRun, kPipe>, slots, NoDetails());
  in.b = static_cast<uint32_t>(loops), in.e = static_cast<uint32_t>(ByteSize(b.Type(op.operands[0]).dtype));
}

void CompileBias(Builder& b, const Op& op) {
  const std::vector<uint32_t> slots = Slots(b, op, Space::kMat, Space::kBias, 6, false);
  const DType s = b.Type(op.operands[0]).dtype, d = b.Type(op.operands[1]).dtype;
  const bool floats = (s == DType::kF32 || s == DType::kF16 || s == DType::kBF16) && d == DType::kF32;
  const bool integers = (s == DType::kI32 || s == DType::kU32) && d == DType::kI32;
  b.Expect(floats || integers, std::string("no bias load from ") + Name(s) + " to " + Name(d));
  BiasCopy copy;
  copy.source = s;
  EmitCommand(b, &IssueCommand<&RunL1Bias, kPipeMte1>, slots, copy);
}

void CompileFrac(Builder& b, const Op& op) {
  const std::vector<uint32_t> slots = Slots(b, op, Space::kGm, Space::kMat, 11);
  const std::string mode = b.TextAttribute(op, "mode", "");
  b.Expect(mode == "nd2nz" || mode == "dn2nz", "unknown mode " + mode);
  Frac f;
  f.columns_first = mode == "dn2nz";
  f.element = ByteSize(b.Type(op.operands[0]).dtype);
  b.Expect(f.element <= 4, "a change of layout takes elements of 1, 2 or 4 bytes");
  EmitCommand(b, &IssueCommand<&RunGmL1Frac, kPipeMte2>, slots, f);
}

void CompileFill(Builder& b, const Op& op) {
  b.ExpectCounts(op, 6, 0);
  ExpectSpace(b, op.operands[0], Space::kMat);
  for (size_t i = 1; i < 6; ++i) b.ExpectInteger(op.operands[i]);
  const int64_t bits = b.IntegerAttribute(op, "fill_word_bits", 0);
  b.Expect(bits == 16 || bits == 32, "fill_word_bits is " + std::to_string(bits));
  RawFill f;
  f.bytes = static_cast<int>(bits / 8);
  EmitCommand(b, &IssueCommand<&RunFill, kPipeMte2>, OperandSlots(b, op.operands), f);
}

}  // namespace

const OpTable& CubeCopyOps() {
  static const OpTable table = {
      {"mte_gm_l1", kOnScalar | kCubeCore, &CompileTransfer<&RunGmL1, kPipeMte2, Space::kGm, Space::kMat, true>},
      {"mte_gm_l1_frac", kOnScalar | kCubeCore, &CompileFrac},
      {"raw_fill_l1", kOnScalar | kCubeCore, &CompileFill},
      {"mte_l1_ub", kOnScalar | kCubeCore, &CompileTransfer<&RunL1Ub, kPipeMte1, Space::kMat, Space::kUb, true>},
      {"mte_ub_l1", kOnScalar | kVectorCore, &CompileTransfer<&RunUbL1, kPipeMte3, Space::kUb, Space::kMat, false>},
      {"mte_l1_bt", kOnScalar | kCubeCore, &CompileBias},
      {"mte_l1_fb", kOnScalar | kCubeCore,
       &CompileTransfer<&RunL1Fixpipe, kPipeFix, Space::kMat, Space::kScaling, false>},
  };
  return table;
}

}  // namespace pto::engine
