// Operations that count lanes: squeeze and its positions, histograms.
#include "core.h"
#include "dispatch.h"
#include "simd.h"

namespace pto::engine {
namespace {

// Active lanes move to the front. Their length in bytes is kept for vstur.
template <class T>
const Inst* Squeeze(Context& c, const Inst* in) {
  const T* a = c.V<T>(in->a);
  const uint64_t* m = c.M(in->c);
  T out[kLanes<T>] = {};
  int n = 0;
  for (int i = 0; i < kLanes<T>; ++i) {
    if (LaneActive<sizeof(T)>(m, i)) out[n++] = a[i];
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  c.core->streams.squeezed_bytes = n * static_cast<int64_t>(sizeof(T));
  return in + 1;
}

// Lane i: how many of the lanes before it are active.
template <class T>
const Inst* CountBefore(Context& c, const Inst* in) {
  const uint64_t* m = c.M(in->c);
  T* d = c.V<T>(in->d);
  int n = 0;
  for (int i = 0; i < kLanes<T>; ++i) {
    d[i] = static_cast<T>(n);
    n += LaneActive<sizeof(T)>(m, i);
  }
  return in + 1;
}

// d: result, a: accumulator (128 of 16 bits, they wrap), b: bytes, c: mask, imm: first value of the covered half
template <bool kCumulative>
const Inst* Histogram(Context& c, const Inst* in) {
  const uint8_t* values = c.V<uint8_t>(in->b);
  const uint64_t* m = c.M(in->c);
  uint16_t count[256] = {};
  for (int i = 0; i < kVectorBytes; ++i)
    count[values[i]] = static_cast<uint16_t>(count[values[i]] + LaneActive<1>(m, i));
  const int first = static_cast<int>(in->imm);
  unsigned below = 0;
  for (int i = 0; i < first; ++i) below += count[i];
  const uint16_t* acc = c.V<uint16_t>(in->a);
  uint16_t* d = c.V<uint16_t>(in->d);
  for (int i = 0; i < 128; ++i) {
    below += count[first + i];
    d[i] = static_cast<uint16_t>(acc[i] + (kCumulative ? below : count[first + i]));
  }
  return in + 1;
}

void CompileSqueeze(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const int bytes = ByteSize(b.Type(op.operands[0]).dtype);
  b.ExpectMask(op.operands[1], bytes);
  EmitMasked(b, op, ForWidth(bytes, [](auto tag) -> Handler { return &Squeeze<typename decltype(tag)::Type>; }));
}

void CompileCountBefore(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const DType t = b.Type(op.operands[0]).dtype;
  b.Expect(IsSigned(t) && ByteSize(t) <= 4, std::string("signed integers are needed, found ") + Name(t));
  b.ExpectMask(op.operands[1], ByteSize(t));
  const uint32_t m = b.Mask(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in =
      b.Emit(ForWidth(ByteSize(t), [](auto tag) -> Handler { return &CountBefore<typename decltype(tag)::Type>; }),
             kCountVector);
  in.d = d.slot, in.c = m;
}

template <bool kCumulative>
void CompileHistogram(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  b.Expect(b.Type(op.operands[0]).dtype == DType::kU16, "the accumulator has elements of type ui16");
  b.Expect(b.Type(op.operands[1]).dtype == DType::kU8, "the source has elements of type ui8");
  b.ExpectMask(op.operands[2], 1);
  const int64_t bin = b.IntegerAttribute(op, "bin", 0);
  b.Expect(bin == 0 || bin == 1, "bin is 0 or 1, found " + std::to_string(bin));
  const uint32_t s = b.Vector(op.operands[1]);
  Inst& in = EmitMasked(b, op, &Histogram<kCumulative>);
  in.b = s, in.imm = 128 * bin;
}

}  // namespace

const OpTable& SimdCountOps() {
  static const OpTable table = {
      {"vsqz", kOnVector, &CompileSqueeze},
      {"vusqz", kOnVector, &CompileCountBefore},
      {"dhistv2", kOnVector, &CompileHistogram<false>},
      {"chistv2", kOnVector, &CompileHistogram<true>},
  };
  return table;
}

}  // namespace pto::engine
