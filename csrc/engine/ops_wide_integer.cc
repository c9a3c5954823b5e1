// Integer operations beyond one result word: carries, whole products and their halves, byte permutation. Those that may
// stand outside simt regions have a scalar and a lane version.
#include <string>

#include "builder.h"
#include "clones.h"
#include "core.h"
#include "dispatch.h"

namespace pto::engine {
namespace {

// High half of the product.
template <class T>
inline T MultiplyHigh(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
  }
}

// --- two results: d, e; the first is a (op) b modulo the width ---

// The second result is the carry of the unsigned sum.
struct AddExtended {
  template <class T>
  static T First(T a, T b) {
    return static_cast<T>(a + b);
  }
  template <class T>
  static uint64_t Other(T a, T b) {
    return static_cast<T>(a + b) < a;
  }
};
// The second result is the high half.
struct MultiplyExtended {
  template <class T>
  static T First(T a, T b) {
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
  template <class T>
  static uint64_t Other(T a, T b) {
    return static_cast<uint64_t>(MultiplyHigh(a, b));
  }
};

template <class F, class T>
const Inst* ScalarPair(Context& c, const Inst* in) {
  const T a = c.S<T>(in->a), b = c.S<T>(in->b);
  c.S<T>(in->d) = F::First(a, b);
  c.S<uint64_t>(in->e) = F::Other(a, b);
  return in + 1;
}

template <class F, class T, class Second>
PTO_CLONES const Inst* LanePair(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *b = c.V<T>(in->b);
  T* d = c.V<T>(in->d);
  Second* e = c.V<Second>(in->e);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) {
    const T x = a[i], y = b[i];
    d[i] = F::First(x, y);
    e[i] = static_cast<Second>(F::Other(x, y));
  }
  return in + 1;
}

template <class F>
void CompilePair(Builder& b, const Op& op, bool lanes) {
  constexpr bool kAdd = std::is_same_v<F, AddExtended>;
  b.ExpectCounts(op, 2, 2);
  b.ExpectInteger(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  if (kAdd)
    b.Expect(b.Type(op.results[1]).dtype == DType::kI1, "the second result is an i1");
  else
    b.ExpectSame(op.operands[0], op.results[1]);
  DType t = b.Type(op.operands[0]).dtype;
  const std::string signedness = b.TextAttribute(op, "signedness", IsUnsigned(t) ? "unsigned" : "signed");
  b.Expect(signedness == "signed" || signedness == "unsigned", "unknown signedness " + signedness);
  b.Expect(kAdd || signedness == "unsigned" || IsSigned(t), "a signed product of unsigned numbers");
  if (kAdd || signedness == "unsigned") t = Signless(t);
  const Handler h = ForInteger(t, [lanes](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    if constexpr (kAdd && std::is_signed_v<T>)
      return nullptr;
    else
      return lanes ? &LanePair<F, T, std::conditional_t<kAdd, uint8_t, T>> : &ScalarPair<F, T>;
  });
  const uint32_t x = lanes ? b.Lanes(op.operands[0]) : b.Scalar(op.operands[0]);
  const uint32_t y = lanes ? b.Lanes(op.operands[1]) : b.Scalar(op.operands[1]);
  const Place d = b.Define(op.results[0]), e = b.Define(op.results[1]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.e = e.slot, in.a = x, in.b = y;
}
template <class F>
void CompileScalarPair(Builder& b, const Op& op) {
  CompilePair<F>(b, op, false);
}
template <class F>
void CompileLanePair(Builder& b, const Op& op) {
  CompilePair<F>(b, op, true);
}

// --- one result, simt only ---

template <class T>
PTO_CLONES const Inst* High(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *b = c.V<T>(in->b);
  T* d = c.V<T>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = MultiplyHigh(a[i], b[i]);
  return in + 1;
}

template <class T, class Wide>
PTO_CLONES const Inst* Whole(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *b = c.V<T>(in->b);
  Wide* d = c.V<Wide>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = static_cast<Wide>(a[i]) * static_cast<Wide>(b[i]);
  return in + 1;
}

bool Unsigned(Builder& b, const Op& op) {
  const std::string signedness = b.TextAttribute(op, "signedness", "");
  b.Expect(signedness == "signed" || signedness == "unsigned", "signedness is signed or unsigned");
  return signedness == "unsigned";
}

void Emit(Builder& b, const Op& op, Handler h) {
  const uint32_t x = b.Lanes(op.operands[0]), y = b.Lanes(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = x, in.b = y;
}

void CompileHigh(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectInteger(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const int bytes = ByteSize(b.Type(op.operands[0]).dtype);
  b.Expect(bytes >= 4, "integers of 32 or 64 bits are needed");
  const bool is_unsigned = Unsigned(b, op);
  Emit(
      b, op,
      bytes == 4 ? (is_unsigned ? &High<uint32_t> : &High<int32_t>) : (is_unsigned ? &High<uint64_t> : &High<int64_t>));
}

void CompileWhole(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectInteger(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectInteger(op.results[0]);
  b.Expect(ByteSize(b.Type(op.operands[0]).dtype) == 4 && ByteSize(b.Type(op.results[0]).dtype) == 8,
           "the operands have 32 bits, the result 64");
  Emit(b, op, Unsigned(b, op) ? &Whole<uint32_t, uint64_t> : &Whole<int32_t, int64_t>);
}

// Bytes 0-3 are those of a, 4-7 those of b; nibble k of the selector chooses byte k of the result. What the highest bit
// of a nibble does is not documented, so it is refused. c: selector
const Inst* Permute(Context& c, const Inst* in) {
  const uint32_t *a = c.V<uint32_t>(in->a), *b = c.V<uint32_t>(in->b), *selector = c.V<uint32_t>(in->c);
  uint32_t* d = c.V<uint32_t>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) {
    if (!c.mask.all && !c.mask.active[i]) continue;
    const uint64_t bytes = static_cast<uint64_t>(b[i]) << 32 | a[i];
    const uint32_t s = selector[i];
    if (s & 0x8888) c.Fail(in, "a selector nibble is larger than 7 in thread " + std::to_string(i));
    uint32_t out = 0;
    for (int k = 0; k < 4; ++k) out |= static_cast<uint32_t>(bytes >> (8 * (s >> (4 * k) & 7)) & 0xFF) << (8 * k);
    d[i] = out;
  }
  return in + 1;
}

void CompilePermute(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  for (uint32_t v : op.operands) {
    b.ExpectInteger(v);
    b.Expect(ByteSize(b.Type(v).dtype) == 4, "the operands have 32 bits");
  }
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t x = b.Lanes(op.operands[0]), y = b.Lanes(op.operands[1]), s = b.Lanes(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&Permute);
  in.d = d.slot, in.a = x, in.b = y, in.c = s;
}

}  // namespace

const OpTable& WideIntegerOps() {
  static const OpTable table = {
      {"addui_extended", kScalarAnywhere, &CompileScalarPair<AddExtended>},
      {"addui_extended", kOnSimt, &CompileLanePair<AddExtended>},
      {"mul_extended", kScalarAnywhere, &CompileScalarPair<MultiplyExtended>},
      {"mul_extended", kOnSimt, &CompileLanePair<MultiplyExtended>},
      {"mulhi", kOnSimt, &CompileHigh},
      {"mul_i32toi64", kOnSimt, &CompileWhole},
      {"prmt", kOnSimt, &CompilePermute},
  };
  return table;
}

}  // namespace pto::engine
