// mad: products of a left tile in L0A and a right tile in L0B, summed in L0C.
//
// C(m, n) starts from zero, from what is there, or from a bias of its column. Products are added one after the other, k
// ascending unless the launch asks for another order; each sum is rounded to f32. Products of inputs with at most 12
// bits of mantissa are exact (inside the range of f32); those of f32 inputs are added with one rounding. Integers are
// exact and the end result saturates.
#include <algorithm>
#include <cstring>
#include <limits>

#include "fractal.h"
#include "low_precision.h"
#include "mad_kernel.h"
#include "mad_operand.h"
#include "mad_work.h"
#include "unit_flags.h"

namespace pto::engine {
namespace {

struct Mad {
  enum Start : uint8_t { kZero, kAccumulate, kBias };
  DType left = DType::kF16, right = DType::kF16, result = DType::kF32;
  bool mx = false;
  Start start = kZero;
  uint8_t unit_flag = kUnitOff;
  bool gemv = true;  // a single row is a contiguous vector
  bool saturate = false;
  Hf32 hf32 = Hf32::kOff;
  int shape = 3;  // operand number of m; n and k follow
  int bias = -1;  // operand numbers, -1: none
  int runtime_unit_flag = -1, runtime_disable_gemv = -1, runtime_init = -1, runtime_bias_init = -1;
};

// A mad with the values of its operands.
struct MadCall {
  const Mad& details;
  int64_t m, n, k;
  uint64_t left, right, result, bias;
  Mad::Start start;
  uint8_t unit_flag;
  bool gemv;

  int64_t RowsPadded() const { return RoundUp(m, kFractalRows); }
  int64_t ColumnsPadded() const { return RoundUp(n, kAccColumns); }
  int64_t ResultBytes() const { return RowsPadded() * ColumnsPadded() * 4; }
};

MadCall Read(const CommandUnit& u, const Mad& d, const uint64_t* v) {
  auto flag = [&](int at, bool otherwise) { return at < 0 ? otherwise : v[at] != 0; };
  MadCall c{d, 0, 0, 0, v[0], v[1], v[2], d.bias < 0 ? 0 : v[d.bias], d.start, d.unit_flag, d.gemv};
  c.m = u.Field("m", v[d.shape], 0, 4095), c.n = u.Field("n", v[d.shape + 1], 0, 4095);
  c.k = u.Field("k", v[d.shape + 2], 0, 4095);
  if (d.runtime_unit_flag >= 0) {
    const uint64_t value = v[d.runtime_unit_flag];
    if (value != kUnitOff && value != kUnitCheck && value != kUnitCheckAndChange) {
      u.Fail("unit_flag is " + std::to_string(static_cast<int64_t>(value)) + ", not 0, 2 (check) or 3 (check and set)");
    }
    c.unit_flag = static_cast<uint8_t>(value);
  }
  c.gemv = !flag(d.runtime_disable_gemv, !d.gemv);
  if (d.runtime_init >= 0 || d.runtime_bias_init >= 0) {
    const bool bias = d.bias >= 0 && flag(d.runtime_bias_init, true);
    c.start = flag(d.runtime_init, false) ? Mad::kZero : bias ? Mad::kBias : Mad::kAccumulate;
  }
  c.gemv = c.gemv && c.m == 1;
  return c;
}

MadOperand Operand(const CommandUnit& u, const CubeMemory& m, const MadCall& c, bool right) {
  const Mad& d = c.details;
  MadOperand o;
  o.type = right ? d.right : d.left;
  o.rows = right ? c.n : c.m;
  o.k = c.k;
  o.hf32 = d.hf32;
  o.saturate = d.saturate;
  const int64_t c0 = C0Elements(o.type), alignment = d.mx && c0 == 32 ? 2 * kFractalBytes : kFractalBytes;
  const bool vector = c.gemv && !right;
  o.fractal_rows = vector ? 1 : RoundUp(o.rows, kFractalRows);
  const int64_t bytes = CeilDiv(c.k, c0) * o.fractal_rows * kC0Bytes;
  const uint64_t address = right ? c.right : c.left;
  o.data = u.In(right ? m.l0b : m.l0a, address, 0, bytes, alignment, Access::kRead);
  if (d.mx) {
    const int64_t scale_bytes = RoundUp(o.rows, kFractalRows) * c.k / 32;
    o.scales = u.In(right ? m.l0b_scale : m.l0a_scale, address / 16, 0, scale_bytes, 1, Access::kRead);
  }
  return o;
}

// The columns of the result in groups of 16; f(first row, first column, four rows by 16 numbers of L0C).
template <class F>
void ForTiles(const MadCall& c, uint8_t* result, F f) {
  for (int64_t n = 0; n < c.n; n += kMadColumns) {
    for (int64_t m = 0; m < c.m; m += kMadRows) f(m, n, result + AccOffset(m, n, c.RowsPadded()));
  }
}

void Start(const CommandUnit& u, const CubeMemory& memory, const MadCall& c, uint8_t* result) {
  if (c.start == Mad::kZero) std::memset(result, 0, static_cast<size_t>(c.ResultBytes()));
  if (c.start != Mad::kBias) return;
  const uint8_t* bias = u.In(memory.bias, c.bias, 0, c.n * 4, 64, Access::kRead);
  for (int64_t n = 0; n < c.n; ++n) {
    for (int64_t m = 0; m < c.m; ++m) std::memcpy(result + AccOffset(m, n, c.RowsPadded()), bias + 4 * n, 4);
  }
}

// What the hardware leaves in the rows and columns beyond the result is not specified.
void PoisonPadding(const MadCall& c, uint8_t* result, int poison) {
  const int64_t rows = c.RowsPadded();
  for (int64_t n = 0; n < c.n && c.m < rows; n += kAccColumns) {
    std::memset(result + AccOffset(c.m, n, rows), poison, static_cast<size_t>((rows - c.m) * kAccRowBytes));
  }
  const int64_t used = c.n % kAccColumns;
  for (int64_t m = 0; m < c.m && used; ++m) {
    std::memset(result + AccOffset(m, c.n, rows), poison, static_cast<size_t>((kAccColumns - used) * 4));
  }
}

void Floats(const CommandUnit& u, const MadCall& c, const MadOrder& order, const float* a, const float* b,
            uint8_t* result) {
  const auto tile = c.details.left == DType::kF32 && c.details.hf32 == Hf32::kOff ? &MadTileFused : &MadTile;
  const int64_t block = order.kind == MadOrder::kBlocked ? C0Elements(c.details.left) : c.k;
  ForTiles(c, result, [&](int64_t m, int64_t n, uint8_t* to) {
    float* sums = reinterpret_cast<float*>(to);
    const float *rows = a + m * c.k, *columns = b + n * c.k;
    if (block == c.k) return tile(rows, columns, sums, c.k);
    for (int64_t k = 0; k < c.k; k += block) {
      float part[kMadRows * kMadColumns] = {};
      tile(rows + k * kMadRows, columns + k * kMadColumns, part, std::min(block, c.k - k));
      for (int i = 0; i < kMadRows * kMadColumns; ++i) sums[i] += part[i];
    }
  });
  if (!c.details.saturate) return;
  const float largest = std::numeric_limits<float>::max();
  ForTiles(c, result, [&](int64_t, int64_t, uint8_t* to) {
    float* sums = reinterpret_cast<float*>(to);
    for (int i = 0; i < kMadRows * kMadColumns; ++i) {
      sums[i] = sums[i] != sums[i] ? 0.0f : std::max(-largest, std::min(largest, sums[i]));
    }
  });
}

// Sums of 512 products of bytes are exact in f32.
void Integers(const MadCall& c, const float* a, const float* b, uint8_t* result) {
  constexpr int64_t kChunk = 512;
  ForTiles(c, result, [&](int64_t m, int64_t n, uint8_t* to) {
    int64_t sums[kMadRows * kMadColumns];
    int32_t* stored = reinterpret_cast<int32_t*>(to);
    std::copy(stored, stored + kMadRows * kMadColumns, sums);
    for (int64_t k = 0; k < c.k; k += kChunk) {
      float part[kMadRows * kMadColumns] = {};
      MadTile(a + (m * c.k + k * kMadRows), b + (n * c.k + k * kMadColumns), part, std::min(kChunk, c.k - k));
      for (int i = 0; i < kMadRows * kMadColumns; ++i) sums[i] += static_cast<int64_t>(part[i]);
    }
    for (int i = 0; i < kMadRows * kMadColumns; ++i) {
      stored[i] = static_cast<int32_t>(std::max<int64_t>(
          std::numeric_limits<int32_t>::min(), std::min<int64_t>(std::numeric_limits<int32_t>::max(), sums[i])));
    }
  });
}

// Scales so far apart that a scaled element is no f32 number: scale each product, rounded once.
void WideScales(const MadCall& c, const MadOperand& left, const MadOperand& right, const std::vector<int32_t>& position,
                int64_t block, const float* a, const float* b, uint8_t* result) {
  std::vector<int32_t> at(position.size());
  for (size_t i = 0; i < position.size(); ++i) at[static_cast<size_t>(position[i])] = static_cast<int32_t>(i);
  auto scale = [](int code) {
    return code == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - 127);
  };
  for (int64_t m = 0; m < c.m; ++m) {
    for (int64_t n = 0; n < c.n; ++n) {
      float* sum = reinterpret_cast<float*>(result + AccOffset(m, n, c.RowsPadded()));
      for (int64_t first = 0; first < c.k; first += block) {
        float part = block == c.k ? *sum : 0.0f;
        for (int64_t i = first; i < std::min(first + block, c.k); ++i) {
          const int64_t group = at[static_cast<size_t>(i)] / 32;
          const double x = a[(m / kMadRows * c.k + i) * kMadRows + m % kMadRows];
          const double y = b[(n / kMadColumns * c.k + i) * kMadColumns + n % kMadColumns];
          part += static_cast<float>(x * y * (scale(ScaleCode(left, m, group)) * scale(ScaleCode(right, n, group))));
        }
        *sum = block == c.k ? part : *sum + part;
      }
    }
  }
}

bool RunMad(Core& core, const Command& command) {
  CommandUnit u(core, command, "M");
  const Mad& d = DetailsOf<Mad>(core, command);
  const MadCall c = Read(u, d, command.values);
  if (c.m == 0 || c.n == 0 || c.k == 0) return true;
  CubeMemory& memory = core.shared->cube;
  uint8_t* result = u.Place(memory.l0c, c.result, 0, c.ResultBytes(), 1024);
  const int64_t first = OffsetOf(c.result);
  if (c.unit_flag != kUnitOff) {
    if (!UnitsAre(memory, first, c.ResultBytes(), 0)) return false;
    UnitsPassed(core, kPipeM, first, c.ResultBytes(), 0);
  }
  if (d.mx && c.k % 64) u.Fail("k is " + std::to_string(c.k) + ", a scaled mad takes multiples of 64");
  if (u.context.monitor) {
    const auto touch = [&](Access access) {
      u.context.monitor->Touch(u.context, u.in, Memory::kL0c, first, c.ResultBytes(), access);
    };
    if (c.start == Mad::kAccumulate) touch(Access::kRead);
    touch(Access::kWrite);
  }
  const MadOperand left = Operand(u, memory, c, false), right = Operand(u, memory, c, true);
  const MadOrder& order = core.options().mad_order;
  const std::vector<int32_t> position = MadPositions(order, c.k);
  const bool wide = d.mx && !(ScalesAreModerate(left) && ScalesAreModerate(right));
  const float* a = PackOperand(left, kMadRows, position, d.mx && !wide, &core.shared->packed_a);
  const float* b = PackOperand(right, kMadColumns, position, d.mx && !wide, &core.shared->packed_b);
  Start(u, memory, c, result);
  if (d.result == DType::kI32) {
    Integers(c, a, b, result);
  } else if (wide) {
    const int64_t block = order.kind == MadOrder::kBlocked ? C0Elements(d.left) : c.k;
    WideScales(c, left, right, position, block, a, b, result);
  } else {
    Floats(u, c, order, a, b, result);
  }
  PoisonPadding(c, result, core.options().poison_byte);
  if (c.unit_flag == kUnitCheckAndChange) ChangeUnits(core, kPipeM, memory, first, c.ResultBytes(), 1);
  ++core.mad_commands;
  core.mad_operations += 2 * c.m * c.n * c.k;
  return true;
}

// --- compilation ---

bool IsFloat8(DType t) { return t == DType::kF8E4M3 || t == DType::kF8E5M2; }
bool IsFloat4(DType t) { return t == DType::kF4E2M1x2 || t == DType::kF4E1M2x2; }

void CheckTypes(const Builder& b, const Mad& d) {
  const DType l = d.left, r = d.right;
  bool good = false;
  if (d.mx) {
    good = ((IsFloat8(l) && IsFloat8(r)) || (IsFloat4(l) && IsFloat4(r))) && d.result == DType::kF32;
  } else if (l == DType::kI8) {
    good = r == DType::kI8 && d.result == DType::kI32;
  } else {
    good = ((l == r && (IsFloat(l) || l == DType::kHiF8)) || (IsFloat8(l) && IsFloat8(r))) && d.result == DType::kF32;
  }
  b.Expect(good, std::string(d.mx ? "no scaled" : "no") + " product of " + Name(l) + " and " + Name(r) + " in " +
                     Name(d.result));
}

uint8_t ParseUnitFlag(const Builder& b, const std::string& word) {
  if (word.empty()) return kUnitOff;
  b.Expect(word == "check_only" || word == "check_and_set", "unknown unit_flag " + word);
  return word == "check_only" ? kUnitCheck : kUnitCheckAndChange;
}

template <Mad::Start kStart, bool kMx>
void Compile(Builder& b, const Op& op) {
  Mad d;
  d.mx = kMx;
  d.start = kStart;
  const bool bias = kStart == Mad::kBias;
  d.shape = bias ? 4 : 3;
  d.bias = bias ? 3 : -1;
  // Flags that are known at run time only follow the extents, in this order.
  int next = d.shape + 3;
  const std::pair<const char*, int*> runtime[] = {{"runtime_unit_flag", &d.runtime_unit_flag},
                                                  {"runtime_disable_gemv", &d.runtime_disable_gemv},
                                                  {"runtime_init", &d.runtime_init},
                                                  {"runtime_bias_init", &d.runtime_bias_init}};
  for (const auto& [key, at] : runtime) {
    if (b.IntegerAttribute(op, key, 0)) *at = next++;
  }
  b.ExpectCounts(op, static_cast<size_t>(next), 0);
  ExpectSpace(b, op.operands[0], Space::kLeft);
  ExpectSpace(b, op.operands[1], Space::kRight);
  ExpectSpace(b, op.operands[2], Space::kAcc);
  d.left = b.Type(op.operands[0]).dtype, d.right = b.Type(op.operands[1]).dtype,
  d.result = b.Type(op.operands[2]).dtype;
  CheckTypes(b, d);
  if (bias) {
    ExpectSpace(b, op.operands[3], Space::kBias);
    b.Expect(b.Type(op.operands[3]).dtype == d.result, "the bias has another type than the result");
  }
  for (size_t i = static_cast<size_t>(d.shape); i < op.operands.size(); ++i) b.ExpectInteger(op.operands[i]);
  d.unit_flag = ParseUnitFlag(b, b.TextAttribute(op, "unit_flag", ""));
  d.gemv = b.IntegerAttribute(op, "disable_gemv", 0) == 0;
  const std::string saturation = b.TextAttribute(op, "sat", "");
  b.Expect(saturation.empty() || saturation == "on" || saturation == "off", "unknown sat " + saturation);
  b.Expect(saturation.empty() || d.result == DType::kF32, "sat is for floats");
  d.saturate = saturation == "on";
  const std::string mode = b.TextAttribute(op, "tf32_mode", "");
  b.Expect(mode.empty() || mode == "round_even" || mode == "round_away", "unknown tf32_mode " + mode);
  b.Expect(mode.empty() || d.left == DType::kF32, "tf32_mode is for f32 operands");
  if (!mode.empty()) d.hf32 = mode == "round_even" ? Hf32::kEven : Hf32::kAway;
  EmitCommand(b, &IssueCommand<&RunMad, kPipeM>, OperandSlots(b, op.operands), d);
}

}  // namespace

MadWork MadWorkOf(const Core& core, const Command& command) {
  const Mad& d = DetailsOf<Mad>(core, command);
  const int64_t* v = reinterpret_cast<const int64_t*>(command.values) + d.shape;
  MadWork work;
  work.m = v[0], work.n = v[1], work.k = v[2];
  work.element_bits = IsFloat4(d.left) ? 4 : 8 * ByteSize(d.left);
  work.whole_f32 = d.left == DType::kF32 && d.hf32 == Hf32::kOff;
  work.scaled = d.mx;
  return work;
}

std::string DescribeMadWait(const Core& core, const Command& c) {
  if (c.fn != &RunMad) return "";
  const int64_t first = OffsetOf(c.values[2]);
  return "the unit flags of L0C from byte " + std::to_string(first) +
         " on to be cleared by an mte_l0c_* with unit_flag=\"check_and_clear\"";
}

const OpTable& MadOps() {
  static const OpTable table = {
      {"mad", kOnScalar | kCubeCore, &Compile<Mad::kZero, false>},
      {"mad_acc", kOnScalar | kCubeCore, &Compile<Mad::kAccumulate, false>},
      {"mad_bias", kOnScalar | kCubeCore, &Compile<Mad::kBias, false>},
      {"mad_mx", kOnScalar | kCubeCore, &Compile<Mad::kZero, true>},
      {"mad_mx_acc", kOnScalar | kCubeCore, &Compile<Mad::kAccumulate, true>},
      {"mad_mx_bias", kOnScalar | kCubeCore, &Compile<Mad::kBias, true>},
  };
  return table;
}

}  // namespace pto::engine
