// L1 to L0A and L0B: fractals as they are or transposed, and the scales of the MX formats.
#include <cstring>

#include "fractal.h"
#include "transfer.h"

namespace pto::engine {
namespace {

// The controls of the instruction, in fractals: m counts 16 rows, k counts 32 bytes.
struct LoadControls {
  int64_t m_start, k_start, m_step, k_step, src_stride, dst_stride;
};

struct Load {
  bool right = false;  // to L0B
  bool transpose = false;
  bool shape = false;   // operands are the extents of the tile; the controls follow from them
  int bits = 16;        // of an element
  bool packed = false;  // two 4-bit elements a byte
};

// Controls for a tile of `rows` (M or N) by `k` elements.
LoadControls FromShape(const Load& l, int64_t rows, int64_t k, int64_t m_start, int64_t k_start) {
  const int64_t bytes = l.packed ? 1 : l.bits / 8, row_bytes = l.packed ? 64 : 32;
  LoadControls c;
  c.m_start = m_start;
  c.k_start = l.packed ? k_start / 2 : k_start;
  if (!l.transpose) {
    c.m_step = c.src_stride = c.dst_stride = CeilDiv(rows, kFractalRows);
    c.k_step = CeilDiv(k * bytes, row_bytes);
    return c;
  }
  const int64_t square = l.packed ? 64 : std::max<int64_t>(16, 32 / bytes);
  const int64_t k_whole = RoundUp(k, square), rows_whole = RoundUp(rows, square);
  c.m_step = c.src_stride = k_whole / kFractalRows;
  c.k_step = CeilDiv(rows_whole * bytes, row_bytes);
  c.dst_stride = rows_whole / kFractalRows;
  return c;
}

void Plain(const CommandUnit& u, const MemoryView& from, const MemoryView& to, const uint64_t* v,
           const LoadControls& l) {
  for (int64_t j = 0; j < l.k_step; ++j) {
    const int64_t bytes = l.m_step * kFractalBytes;
    const uint8_t* src =
        u.In(from, v[0], ((l.k_start + j) * l.src_stride + l.m_start) * kFractalBytes, bytes, kC0Bytes, Access::kRead);
    std::memcpy(u.In(to, v[1], j * l.dst_stride * kFractalBytes, bytes, kFractalBytes, Access::kWrite), src,
                static_cast<size_t>(bytes));
  }
}

// Row r and column c of the source become K element r of row c. f(source, row, column, destination, row, column):
// moves one element between two fractals.
template <class F>
void Transposed(const CommandUnit& u, const MemoryView& from, const MemoryView& to, const uint64_t* v,
                const LoadControls& l, int64_t c0, F f) {
  for (int64_t j = 0; j < l.k_step; ++j) {
    for (int64_t i = 0; i < l.m_step; ++i) {
      const uint8_t* src = u.In(from, v[0], ((l.k_start + j) * l.src_stride + l.m_start + i) * kFractalBytes,
                                kFractalBytes, kC0Bytes, Access::kRead);
      // A square of both sizes: what goes to one destination fractal.
      const int64_t side = std::min(kFractalRows, c0);
      for (int64_t r0 = 0; r0 < kFractalRows; r0 += side) {
        for (int64_t c0_part = 0; c0_part < c0; c0_part += side) {
          const int64_t row = i * kFractalRows + r0, column = j * c0 + c0_part;
          const int64_t fractal = row / c0 * l.dst_stride + column / kFractalRows;
          uint8_t* dst = u.In(to, v[1], fractal * kFractalBytes, kFractalBytes, kFractalBytes, Access::kWrite);
          for (int64_t r = 0; r < side; ++r) {
            for (int64_t c = 0; c < side; ++c) {
              f(src, r0 + r, c0_part + c, dst, (column + c) % kFractalRows, (row + r) % c0);
            }
          }
        }
      }
    }
  }
}

template <class T>
void MoveElement(const uint8_t* src, int64_t r, int64_t c, uint8_t* dst, int64_t dr, int64_t dc) {
  std::memcpy(dst + dr * kC0Bytes + dc * static_cast<int64_t>(sizeof(T)),
              src + r * kC0Bytes + c * static_cast<int64_t>(sizeof(T)), sizeof(T));
}
void MoveHalfByte(const uint8_t* src, int64_t r, int64_t c, uint8_t* dst, int64_t dr, int64_t dc) {
  const uint8_t value = src[r * kC0Bytes + c / 2] >> (c % 2 * 4) & 0xF;
  uint8_t* to = dst + dr * kC0Bytes + dc / 2;
  *to = static_cast<uint8_t>((*to & (dc % 2 ? 0x0F : 0xF0)) | value << (dc % 2 * 4));
}

bool RunLoad(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE1");
  const Load& l = DetailsOf<Load>(core, c);
  const uint64_t* v = c.values;
  LoadControls k;
  if (l.shape) {
    // Extents and starts; L0B: k first.
    const int64_t first = u.Field("the first extent", v[2], 1, 65535),
                  second = u.Field("the second extent", v[3], 1, 65535);
    k = FromShape(l, l.right ? second : first, l.right ? first : second, static_cast<int64_t>(v[4]),
                  static_cast<int64_t>(v[5]));
  } else {
    auto at = [&](int i) { return static_cast<int64_t>(v[i]); };
    k = {at(2), at(3), at(4), at(5), at(6), at(7)};
  }
  auto field = [&](const char* name, int64_t value, int64_t low, int64_t high) {
    u.Field(name, static_cast<uint64_t>(value), low, high);
  };
  field("m_start", k.m_start, 0, 65535), field("k_start", k.k_start, 0, 65535);
  field("m_step", k.m_step, 0, 255), field("k_step", k.k_step, 0, 255);
  field("src_stride", k.src_stride, 1, 65535), field("dst_stride", k.dst_stride, 1, 65535);
  ++core.dma_commands;
  core.dma_bytes += k.m_step * k.k_step * kFractalBytes;
  const CubeMemory& m = core.shared->cube;
  const MemoryView& to = l.right ? m.l0b : m.l0a;
  if (!l.transpose) {
    Plain(u, m.l1, to, v, k);
    return true;
  }
  const int bits = l.packed ? 4 : l.bits;
  const int64_t m_unit = bits == 4 ? 4 : bits == 8 ? 2 : 1, k_unit = bits == 32 ? 2 : 1;
  if (k.m_step % m_unit || k.k_step % k_unit) {
    u.Fail("a transposing load of " + std::to_string(bits) + "-bit elements takes m_step in multiples of " +
           std::to_string(m_unit) + " and k_step in multiples of " + std::to_string(k_unit) + ", found " +
           std::to_string(k.m_step) + " and " + std::to_string(k.k_step));
  }
  switch (bits) {
    case 4:
      Transposed(u, m.l1, to, v, k, 64, MoveHalfByte);
      break;
    case 8:
      Transposed(u, m.l1, to, v, k, 32, MoveElement<uint8_t>);
      break;
    case 16:
      Transposed(u, m.l1, to, v, k, 16, MoveElement<uint16_t>);
      break;
    default:
      Transposed(u, m.l1, to, v, k, 8, MoveElement<uint32_t>);
      break;
  }
  return true;
}

// --- scales: fragments of 32 bytes, 16 rows by 2 groups of 32 along K. x counts 16 rows, y counts fragments of a row
// ---

bool RunScaleLoad(Core& core, const Command& c) {
  CommandUnit u(core, c, "MTE1");
  const Load& l = DetailsOf<Load>(core, c);
  const uint64_t* v = c.values;
  int64_t x_start = static_cast<int64_t>(v[4]), y_start = static_cast<int64_t>(v[5]), x_step, y_step, src_stride,
          dst_stride;
  if (l.shape) {
    const int64_t first = u.Field("the first extent", v[2], 1, 65535),
                  second = u.Field("the second extent", v[3], 1, 65535);
    const int64_t rows = l.right ? second : first, k = l.right ? first : second;
    x_step = CeilDiv(rows, kFractalRows);
    const int64_t groups = CeilDiv(k, 32);
    y_step = CeilDiv(groups * l.bits / 8, 2);
    src_stride = dst_stride = l.right ? CeilDiv(groups, 2) : y_step;
  } else {
    x_start = static_cast<int64_t>(v[2]), y_start = static_cast<int64_t>(v[3]);
    x_step = static_cast<int64_t>(v[4]), y_step = static_cast<int64_t>(v[5]);
    src_stride = static_cast<int64_t>(v[6]), dst_stride = static_cast<int64_t>(v[7]);
  }
  auto field = [&](const char* name, int64_t value, int64_t high) {
    u.Field(name, static_cast<uint64_t>(value), 0, high);
  };
  field("x_start", x_start, 65535), field("y_start", y_start, 65535);
  field("x_step", x_step, 255), field("y_step", y_step, 255);
  field("src_stride", src_stride, 65535), field("dst_stride", dst_stride, 65535);
  ++core.dma_commands;
  core.dma_bytes += x_step * y_step * kC0Bytes;
  const CubeMemory& m = core.shared->cube;
  // The destination is named by the data it belongs to; its scales are at a sixteenth of that address.
  u.Place(l.right ? m.l0b : m.l0a, v[1], 0, 16, 16);
  for (int64_t x = 0; x < x_step; ++x) {
    const int64_t bytes = y_step * kC0Bytes;
    const uint8_t* from =
        u.In(m.l1, v[0], ((x_start + x) * src_stride + y_start) * kC0Bytes, bytes, kC0Bytes, Access::kRead);
    std::memcpy(
        u.In(l.right ? m.l0b_scale : m.l0a_scale, v[1] / 16, x * dst_stride * kC0Bytes, bytes, 1, Access::kWrite), from,
        static_cast<size_t>(bytes));
  }
  return true;
}

template <CommandFn kRun, bool kRight, bool kScale>
void Compile(Builder& b, const Op& op) {
  const std::string form = b.TextAttribute(op, "form", "controls");
  b.Expect(form == "controls" || form == "shape", "unknown form " + form);
  Load l;
  l.right = kRight;
  l.shape = form == "shape";
  b.ExpectCounts(op, l.shape ? 6 : 8, 0);
  ExpectSpace(b, op.operands[0], Space::kMat);
  ExpectSpace(b, op.operands[1], kRight ? Space::kRight : Space::kLeft);
  for (size_t i = 2; i < op.operands.size(); ++i) b.ExpectInteger(op.operands[i]);
  const DType s = b.Type(op.operands[0]).dtype, d = b.Type(op.operands[1]).dtype;
  l.packed = s == DType::kF4E2M1x2 || s == DType::kF4E1M2x2;
  if (!kScale) {
    b.Expect(ByteSize(s) == ByteSize(d) && ByteSize(s) <= 4,
             std::string("no load of ") + Name(s) + " as " + Name(d) + ": elements of one width of at most 32 bits");
    b.Expect(!l.packed || s == d, std::string("4-bit elements are loaded as what they are, not as ") + Name(d));
  }
  l.bits = 8 * ByteSize(s);
  l.transpose = b.IntegerAttribute(op, "transpose", 0) != 0;
  EmitCommand(b, &IssueCommand<kRun, kPipeMte1>, OperandSlots(b, op.operands), l);
}

}  // namespace

const OpTable& CubeLoadOps() {
  static const OpTable table = {
      {"mte_l1_l0a", kOnScalar | kCubeCore, &Compile<&RunLoad, false, false>},
      {"mte_l1_l0b", kOnScalar | kCubeCore, &Compile<&RunLoad, true, false>},
      {"mte_l1_l0a_mx", kOnScalar | kCubeCore, &Compile<&RunScaleLoad, false, true>},
      {"mte_l1_l0b_mx", kOnScalar | kCubeCore, &Compile<&RunScaleLoad, true, true>},
  };
  return table;
}

}  // namespace pto::engine
