// SIMT arithmetic: loops over the active range of lane arrays.
//
// A lane array holds one element per thread; a short vector holds one lane array per component. Inactive threads inside
// the range compute too: their results are never read, only traps and memory have to respect the mask.
#include <algorithm>
#include <cstring>

#include "approximate.h"
#include "arith.h"
#include "builder.h"
#include "clones.h"
#include "convert.h"
#include "core.h"
#include "dispatch.h"
#include "scalar_words.h"
#include "simt.h"

namespace pto::engine {
namespace {

// --- handlers the builder uses ---

template <class T>
PTO_CLONES const Inst* SpreadLanes(Context& c, const Inst* in) {
  const T x = c.S<T>(in->a);
  T* d = c.V<T>(in->d);
  for (int i = 0; i < c.threads; ++i) d[i] = x;
  return in + 1;
}

// The active range of all components; inactive threads inside it are overwritten, which nothing sees.
template <class T>
PTO_CLONES const Inst* MoveLanes(Context& c, const Inst* in) {
  for (uint32_t k = 0; k < in->e; ++k) {
    const T* a = c.V<T>(in->a) + k * static_cast<uint32_t>(c.threads);
    T* d = c.V<T>(in->d) + k * static_cast<uint32_t>(c.threads);
    std::memmove(d + c.mask.lo, a + c.mask.lo, sizeof(T) * static_cast<size_t>(c.mask.hi - c.mask.lo));
  }
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* MergeLanes(Context& c, const Inst* in) {
  if (c.mask.all) return MoveLanes<T>(c, in);
  const uint8_t* active = c.mask.active;
  for (uint32_t k = 0; k < in->e; ++k) {
    const T* a = c.V<T>(in->a) + k * static_cast<uint32_t>(c.threads);
    T* d = c.V<T>(in->d) + k * static_cast<uint32_t>(c.threads);
    for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = active[i] ? a[i] : d[i];
  }
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* WidenLanes(Context& c, const Inst* in) {
  const T* a = c.V<T>(in->a);
  int64_t* d = c.V<int64_t>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = static_cast<int64_t>(a[i]);
  return in + 1;
}

// --- arithmetic: e components ---

template <class F, class T>
const Inst* PerturbedUnary(Context& c, const Inst* in) {
  for (uint32_t k = 0; k < in->e; ++k) {
    const uint32_t skip = k * static_cast<uint32_t>(c.threads);
    const T* a = c.V<T>(in->a) + skip;
    T* d = c.V<T>(in->d) + skip;
    for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = F::Perturbed(c.seed, a[i]);
  }
  return in + 1;
}

template <class F, class T, bool kUniformB>
const Inst* PerturbedBinary(Context& c, const Inst* in) {
  for (uint32_t k = 0; k < in->e; ++k) {
    const uint32_t skip = k * static_cast<uint32_t>(c.threads);
    const T* a = c.V<T>(in->a) + skip;
    const T* b = kUniformB ? &c.S<T>(in->b) : c.V<T>(in->b) + skip;
    T* d = c.V<T>(in->d) + skip;
    for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = F::Perturbed(c.seed, a[i], kUniformB ? *b : b[i]);
  }
  return in + 1;
}

template <class F, class T>
PTO_CLONES const Inst* Unary(Context& c, const Inst* in) {
  if constexpr (Perturbs<F, T>()) {
    if (c.perturbed) return PerturbedUnary<F, T>(c, in);
  }
  for (uint32_t k = 0; k < in->e; ++k) {
    const T* __restrict a = c.V<T>(in->a) + k * static_cast<uint32_t>(c.threads);
    T* __restrict d = c.V<T>(in->d) + k * static_cast<uint32_t>(c.threads);
    const int hi = c.mask.hi;
    for (int i = c.mask.lo; i < hi; ++i) d[i] = Apply1<F>(a[i]);
  }
  return in + 1;
}

// kUniformB: b is a scalar slot
template <class F, class T, bool kUniformB>
PTO_CLONES const Inst* Binary(Context& c, const Inst* in) {
  if constexpr (Perturbs<F, T>()) {
    if (c.perturbed) return PerturbedBinary<F, T, kUniformB>(c, in);
  }
  for (uint32_t k = 0; k < in->e; ++k) {
    const T* __restrict a = c.V<T>(in->a) + k * static_cast<uint32_t>(c.threads);
    T* __restrict d = c.V<T>(in->d) + k * static_cast<uint32_t>(c.threads);
    const int hi = c.mask.hi;
    if constexpr (kUniformB) {
      const T b = c.S<T>(in->b);
      for (int i = c.mask.lo; i < hi; ++i) d[i] = Apply2<F>(a[i], b);
    } else {
      const T* __restrict b = c.V<T>(in->b) + k * static_cast<uint32_t>(c.threads);
      for (int i = c.mask.lo; i < hi; ++i) d[i] = Apply2<F>(a[i], b[i]);
    }
  }
  return in + 1;
}

template <class F, class T, bool kUniformB>
PTO_CLONES const Inst* Division(Context& c, const Inst* in) {
  if constexpr (!kIsFloat<T>) {
    if constexpr (kUniformB) {
      if (c.S<T>(in->b) == 0) c.Fail(in, "division by zero");
    } else {
      for (uint32_t k = 0; k < in->e; ++k) {
        const T* b = c.V<T>(in->b) + k * static_cast<uint32_t>(c.threads);
        for (int i = c.mask.lo; i < c.mask.hi; ++i) {
          if (b[i] == 0 && (c.mask.all || c.mask.active[i]))
            c.Fail(in, "division by zero in thread " + std::to_string(i));
        }
      }
    }
  }
  return Binary<F, T, kUniformB>(c, in);
}

template <class T>
PTO_CLONES const Inst* Fma(Context& c, const Inst* in) {
  for (uint32_t k = 0; k < in->e; ++k) {
    const uint32_t skip = k * static_cast<uint32_t>(c.threads);
    const T *x = c.V<T>(in->a) + skip, *y = c.V<T>(in->b) + skip, *z = c.V<T>(in->c) + skip;
    T* d = c.V<T>(in->d) + skip;
    for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = MultiplyAdd(x[i], y[i], z[i]);
  }
  return in + 1;
}

template <class F, class T, bool kUniformB>
PTO_CLONES const Inst* Cmp(Context& c, const Inst* in) {
  for (uint32_t k = 0; k < in->e; ++k) {
    const T* __restrict a = c.V<T>(in->a) + k * static_cast<uint32_t>(c.threads);
    uint8_t* __restrict d = c.V<uint8_t>(in->d) + k * static_cast<uint32_t>(c.threads);
    const int hi = c.mask.hi;
    if constexpr (kUniformB) {
      const T b = c.S<T>(in->b);
      for (int i = c.mask.lo; i < hi; ++i) d[i] = Compare<F>(a[i], b);
    } else {
      const T* __restrict b = c.V<T>(in->b) + k * static_cast<uint32_t>(c.threads);
      for (int i = c.mask.lo; i < hi; ++i) d[i] = Compare<F>(a[i], b[i]);
    }
  }
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* Select(Context& c, const Inst* in) {
  const uint8_t* condition = c.V<uint8_t>(in->a);
  for (uint32_t k = 0; k < in->e; ++k) {
    const uint32_t skip = k * static_cast<uint32_t>(c.threads);
    const T *x = c.V<T>(in->b) + skip, *y = c.V<T>(in->c) + skip;
    T* d = c.V<T>(in->d) + skip;
    for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = condition[i] ? x[i] : y[i];
  }
  return in + 1;
}

// imm: rounding, flag: saturate
template <class S, class D>
PTO_CLONES const Inst* Cast(Context& c, const Inst* in) {
  const Rounding r = static_cast<Rounding>(in->imm);
  const bool saturate = in->flag != 0;
  for (uint32_t k = 0; k < in->e; ++k) {
    const S* __restrict a = c.V<S>(in->a) + k * static_cast<uint32_t>(c.threads);
    D* __restrict d = c.V<D>(in->d) + k * static_cast<uint32_t>(c.threads);
    const int hi = c.mask.hi;
    if (kIsFloat<D> && r == Rounding::kR && !saturate) {
      for (int i = c.mask.lo; i < hi; ++i) d[i] = ConvertNumber<D>(a[i], Rounding::kR, false);
    } else if (!kIsFloat<S> && !kIsFloat<D> && !saturate) {
      for (int i = c.mask.lo; i < hi; ++i) d[i] = ConvertNumber<D>(a[i], Rounding::kZ, false);
    } else {
      for (int i = c.mask.lo; i < hi; ++i) d[i] = ConvertNumber<D>(a[i], r, saturate);
    }
  }
  return in + 1;
}

template <class S>
PTO_CLONES const Inst* CastToBit(Context& c, const Inst* in) {
  const S* a = c.V<S>(in->a);
  uint8_t* d = c.V<uint8_t>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = static_cast<uint8_t>(a[i] & 1);
  return in + 1;
}

// imm: bytes per element
const Inst* AddPtr(Context& c, const Inst* in) {
  const uint64_t* a = c.V<uint64_t>(in->a);
  const int64_t* b = c.V<int64_t>(in->b);
  uint64_t* d = c.V<uint64_t>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = AddBytes(a[i], b[i] * in->imm);
  return in + 1;
}

const Inst* GmFromAddress(Context& c, const Inst* in) {
  const uint64_t* a = c.V<uint64_t>(in->a);
  uint64_t* d = c.V<uint64_t>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = c.global->PointerTo(a[i], in->imm);
  return in + 1;
}
const Inst* GmToAddress(Context& c, const Inst* in) {
  const uint64_t* a = c.V<uint64_t>(in->a);
  uint64_t* d = c.V<uint64_t>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = c.global->AddressOf(a[i]);
  return in + 1;
}

// --- queries ---

// imm: axis
const Inst* ThreadIndex(Context& c, const Inst* in) {
  const int *dims = c.code->dims, axis = static_cast<int>(in->imm);
  const int below = axis == 0 ? 1 : axis == 1 ? dims[0] : dims[0] * dims[1];
  int32_t* d = c.V<int32_t>(in->d);
  int value = 0, run = 0;
  for (int i = 0; i < c.threads; ++i) {
    d[i] = value;
    if (++run == below) {
      run = 0;
      if (++value == dims[axis]) value = 0;
    }
  }
  return in + 1;
}

const Inst* LaneIndex(Context& c, const Inst* in) {
  int32_t* d = c.V<int32_t>(in->d);
  for (int i = 0; i < c.threads; ++i) d[i] = i & 31;
  return in + 1;
}

// The lanes of a warp below, at or above a thread's own, as bits.
enum class LaneSet { kEqual, kBelow, kUpTo, kAbove, kFrom };
template <LaneSet kSet>
const Inst* LaneMask(Context& c, const Inst* in) {
  uint32_t* d = c.V<uint32_t>(in->d);
  for (int i = 0; i < c.threads; ++i) {
    const uint32_t own = 1u << (i & 31), below = own - 1;
    d[i] = kSet == LaneSet::kEqual   ? own
           : kSet == LaneSet::kBelow ? below
           : kSet == LaneSet::kUpTo  ? below | own
           : kSet == LaneSet::kAbove ? ~(below | own)
                                     : ~below;
  }
  return in + 1;
}

// No cycles are counted: the clock is the number of instructions that the threads of this core have executed.
template <class T>
const Inst* Clock(Context& c, const Inst* in) {
  T* d = c.V<T>(in->d);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) d[i] = static_cast<T>(c.thread_instructions);
  return in + 1;
}

// Every core is a block of its own and runs on a core of that number.
const Inst* CoreNumber(Context& c, const Inst* in) {
  int32_t* d = c.V<int32_t>(in->d);
  for (int i = 0; i < c.threads; ++i) d[i] = static_cast<int32_t>(c.core->block);
  return in + 1;
}

const Inst* SyncThreads(Context& c, const Inst* in) {
  if (c.mask.count != c.threads) {
    c.Fail(in,
           "only " + std::to_string(c.mask.count) + " of " + std::to_string(c.threads) + " threads reach the barrier");
  }
  if (__builtin_expect(c.monitor != nullptr, 0)) c.monitor->SyncThreads(c, in);
  return in + 1;
}

// The threads of a region advance together and memory is updated at once: nothing to wait for.
const Inst* FenceThreads(Context& c, const Inst* in) {
  if (__builtin_expect(c.monitor != nullptr, 0)) c.monitor->FenceThreads(c, in);
  return in + 1;
}

// --- compilation ---

uint32_t Components(Builder& b, uint32_t value) {
  const ValueType& t = b.Type(value);
  b.Expect(t.kind == Kind::kScalar || t.kind == Kind::kShortVector,
           std::string("expected a scalar, found a ") + Name(t.kind));
  return t.kind == Kind::kShortVector ? t.lanes : 1;
}

template <class F>
constexpr bool kCommutes = std::is_same_v<F, Add> || std::is_same_v<F, Mul> || std::is_same_v<F, And> ||
                           std::is_same_v<F, Or> || std::is_same_v<F, Xor>;
template <class F>
constexpr bool kAnySign = kCommutes<F> || std::is_same_v<F, Sub>;
template <class F>
constexpr bool kDivides = std::is_base_of_v<Div, F> || std::is_same_v<F, FloorDiv> || std::is_same_v<F, Rem>;

// A uniform second operand stays in the scalar frame.
struct Pair {
  uint32_t a, b;
  bool uniform;
};
Pair Operands(Builder& b, uint32_t x, uint32_t y, bool commutes) {
  const bool scalars = b.Type(x).kind == Kind::kScalar || b.Type(x).kind == Kind::kPointer;
  if (scalars && commutes && !b.IsVarying(x)) std::swap(x, y);
  if (scalars && !b.IsVarying(y)) {
    const uint32_t second = b.Scalar(y);
    return {b.Lanes(x), second, true};
  }
  const uint32_t first = b.Lanes(x);
  return {first, b.Lanes(y), false};
}

void EmitBinary(Builder& b, const Op& op, bool commutes, Handler vv, Handler vu) {
  const uint32_t n = Components(b, op.operands[0]);
  const Pair p = Operands(b, op.operands[0], op.operands[1], commutes);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(p.uniform ? vu : vv);
  in.d = d.slot, in.a = p.a, in.b = p.b, in.e = n;
}

enum Family { kNumbers, kIntegers, kFloats };

template <class F, bool kUniformB, Family kFamily>
Handler BinaryHandler(DType t) {
  if (kAnySign<F>) t = Signless(t);
  auto pick = [](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    if constexpr (kDivides<F>)
      return &Division<F, T, kUniformB>;
    else
      return &Binary<F, T, kUniformB>;
  };
  if constexpr (kFamily == kNumbers)
    return ForNumber(t, pick);
  else if constexpr (kFamily == kIntegers)
    return ForInteger(t, pick);
  else
    return ForFloat(t, pick);
}

template <class F, Family kFamily>
void CompileBinary(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const DType t = IntegerType<F>(b.Type(op.operands[0]).dtype);
  EmitBinary(b, op, kCommutes<F>, BinaryHandler<F, false, kFamily>(t), BinaryHandler<F, true, kFamily>(t));
}

// What PTODSL calls high precision is correctly rounded and keeps subnormals.
void CompileDivision(Builder& b, const Op& op) {
  if (b.TextAttribute(op, "precision", "") == "HighPrecision")
    CompileBinary<Div, kNumbers>(b, op);
  else
    CompileBinary<Hardware<Div, Approximation::div>, kNumbers>(b, op);
}

void EmitUnary(Builder& b, const Op& op, Handler h) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t n = Components(b, op.operands[0]), x = b.Lanes(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = x, in.e = n;
}
template <class F>
void CompileUnary(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  EmitUnary(b, op, ForNumber(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler {
              return &Unary<F, typename decltype(tag)::Type>;
            }));
}
template <class F>
void CompileFloatUnary(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  EmitUnary(b, op, ForFloat(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler {
              return &Unary<F, typename decltype(tag)::Type>;
            }));
}

template <class F, Approximation kOp>
void CompileApproximate(Builder& b, const Op& op) {
  CompileFloatUnary<Hardware<F, kOp>>(b, op);
}

void CompileFma(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  for (int i = 1; i < 3; ++i) b.ExpectSame(op.operands[0], op.operands[i]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t n = Components(b, op.operands[0]);
  const uint32_t x = b.Lanes(op.operands[0]), y = b.Lanes(op.operands[1]), z = b.Lanes(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(
      ForNumber(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler { return &Fma<typename decltype(tag)::Type>; }));
  in.d = d.slot, in.a = x, in.b = y, in.c = z, in.e = n;
}

void CompileCmp(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.Expect(b.Type(op.results[0]).dtype == DType::kI1, "the result of cmp is an i1");
  const ValueType& type = b.Type(op.operands[0]);
  const DType t = ComparedType(type);
  const uint32_t n = type.kind == Kind::kShortVector ? type.lanes : 1;
  const Pair p = Operands(b, op.operands[0], op.operands[1], false);
  const Handler h = ForPredicate(b, b.TextAttribute(op, "pred", ""), [&](auto f) -> Handler {
    return ForNumber(t, [&](auto tag) -> Handler {
      using T = typename decltype(tag)::Type;
      return p.uniform ? &Cmp<decltype(f), T, true> : &Cmp<decltype(f), T, false>;
    });
  });
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = p.a, in.b = p.b, in.e = n;
}

void CompileSelect(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.Expect(b.Type(op.operands[0]).kind == Kind::kScalar && b.Type(op.operands[0]).dtype == DType::kI1,
           "the condition is not an i1");
  b.ExpectSame(op.operands[1], op.operands[2]);
  b.ExpectSame(op.operands[1], op.results[0]);
  const ValueType& t = b.Type(op.operands[1]);
  const uint32_t n = t.kind == Kind::kShortVector ? t.lanes : 1;
  const uint32_t x = b.Lanes(op.operands[0]), y = b.Lanes(op.operands[1]), z = b.Lanes(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(ForWidth(t.kind == Kind::kPointer ? 8 : ByteSize(t.dtype),
                             [](auto tag) -> Handler { return &Select<typename decltype(tag)::Type>; }));
  in.d = d.slot, in.a = x, in.b = y, in.c = z, in.e = n;
}

void CompileCast(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  const uint32_t n = Components(b, op.operands[0]);
  b.Expect(n == Components(b, op.results[0]), "the numbers of elements differ");
  const DType s = b.Type(op.operands[0]).dtype, d = b.Type(op.results[0]).dtype;
  const CastWords words = ParseCastWords(b, op, s, d);
  Handler h = nullptr;
  if (d == DType::kI1) {
    h = ForInteger(s, [](auto tag) -> Handler { return &CastToBit<typename decltype(tag)::Type>; });
  } else {
    h = ForNumber(Stored(s), [d](auto from) -> Handler {
      return ForNumber(
          d, [](auto to) -> Handler { return &Cast<typename decltype(from)::Type, typename decltype(to)::Type>; });
    });
  }
  const uint32_t x = b.Lanes(op.operands[0]);
  const Place place = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = place.slot, in.a = x, in.e = n, in.imm = static_cast<int64_t>(words.rounding), in.flag = words.saturate;
}

// A short vector of another element width would need its components regrouped.
void CompileBitcast(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  const uint32_t n = Components(b, op.operands[0]);
  const int bytes = ByteSize(b.Type(op.operands[0]).dtype);
  b.Expect(n == Components(b, op.results[0]) && bytes == ByteSize(b.Type(op.results[0]).dtype), "the widths differ");
  const uint32_t x = b.Lanes(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(LaneMoveHandler(bytes, false));
  in.d = d.slot, in.a = x, in.e = n;
}

void CompileCastPtr(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  const ValueType& s = b.Type(op.operands[0]);
  const ValueType& t = b.Type(op.results[0]);
  const PointerCast cast = ParsePointerCast(b, s, t);
  const uint32_t x = s.kind == Kind::kPointer ? b.Lanes(op.operands[0]) : b.Lanes64(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(cast == PointerCast::kFromAddress ? &GmFromAddress
                    : cast == PointerCast::kToAddress ? &GmToAddress
                                                      : LaneMoveHandler(8, false));
  in.d = d.slot, in.a = x, in.e = 1, in.imm = ByteSize(t.dtype);
}

void CompileAddPtr(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectPointer(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t p = b.Lanes(op.operands[0]), n = b.Lanes64(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&AddPtr);
  in.d = d.slot, in.a = p, in.b = n, in.imm = ByteSize(b.Type(op.operands[0]).dtype);
}

void ExpectInt32(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  b.Expect(b.Type(op.results[0]).kind == Kind::kScalar && ByteSize(b.Type(op.results[0]).dtype) == 4 &&
               IsInteger(b.Type(op.results[0]).dtype),
           "the result is an i32");
}

template <int kAxis>
void CompileThreadIndex(Builder& b, const Op& op) {
  ExpectInt32(b, op);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&ThreadIndex);
  in.d = d.slot, in.imm = kAxis;
}

template <int kAxis>
void CompileBlockDim(Builder& b, const Op& op) {
  ExpectInt32(b, op);
  b.Expect(b.unit() == kOnSimt, "thread queries exist only in a simt region");
  b.DefineConstant(op.results[0], static_cast<uint64_t>(b.code().dims[kAxis]));
}

void CompileLaneIndex(Builder& b, const Op& op) {
  ExpectInt32(b, op);
  const Place d = b.Define(op.results[0]);
  b.Emit(&LaneIndex).d = d.slot;
}

template <Handler H>
void CompileQuery(Builder& b, const Op& op) {
  ExpectInt32(b, op);
  const Place d = b.Define(op.results[0]);
  b.Emit(H).d = d.slot;
}

// A launch of threads is one block: its index among the threads' blocks is 0 of 1.
template <int kValue>
void CompileGrid(Builder& b, const Op& op) {
  ExpectInt32(b, op);
  b.Expect(b.unit() == kOnSimt, "thread queries exist only in a simt region");
  b.DefineConstant(op.results[0], kValue);
}

void CompileClock64(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  b.Expect(ByteSize(b.Type(op.results[0]).dtype) == 8 && IsInteger(b.Type(op.results[0]).dtype),
           "the result is an i64");
  const Place d = b.Define(op.results[0]);
  b.Emit(&Clock<int64_t>).d = d.slot;
}

void CompileFence(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 0);
  b.Emit(&FenceThreads);
}

void CompileSync(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 0);
  b.Emit(&SyncThreads);
}

}  // namespace

Handler SpreadHandler(int element_bytes) {
  return ForWidth(element_bytes, [](auto tag) -> Handler { return &SpreadLanes<typename decltype(tag)::Type>; });
}

Handler LaneMoveHandler(int element_bytes, bool merge) {
  return ForWidth(element_bytes, [merge](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    return merge ? &MergeLanes<T> : &MoveLanes<T>;
  });
}

Handler LaneWidenHandler(DType from) {
  return ForInteger(Stored(from), [](auto tag) -> Handler { return &WidenLanes<typename decltype(tag)::Type>; });
}

const OpTable& SimtOps() {
  static const OpTable table = {
      {"add", kOnSimt, &CompileBinary<Add, kNumbers>},
      {"sub", kOnSimt, &CompileBinary<Sub, kNumbers>},
      {"mul", kOnSimt, &CompileBinary<Mul, kNumbers>},
      {"div", kOnSimt, &CompileDivision},
      {"floordiv", kOnSimt, &CompileBinary<FloorDiv, kNumbers>},
      {"rem", kOnSimt, &CompileBinary<Rem, kNumbers>},
      {"and", kOnSimt, &CompileBinary<And, kIntegers>},
      {"or", kOnSimt, &CompileBinary<Or, kIntegers>},
      {"xor", kOnSimt, &CompileBinary<Xor, kIntegers>},
      {"shl", kOnSimt, &CompileBinary<Shl, kIntegers>},
      {"shr", kOnSimt, &CompileBinary<Shr, kIntegers>},
      {"min", kOnSimt, &CompileBinary<Min, kNumbers>},
      {"max", kOnSimt, &CompileBinary<Max, kNumbers>},
      {"minimum", kOnSimt, &CompileBinary<Minimum, kFloats>},
      {"maximum", kOnSimt, &CompileBinary<Maximum, kFloats>},
      {"pow", kOnSimt, &CompileBinary<Hardware<Pow, Approximation::pow>, kFloats>},
      {"neg", kOnSimt, &CompileUnary<Neg>},
      {"abs", kOnSimt, &CompileUnary<Abs>},
      {"exp", kOnSimt, &CompileApproximate<Exp, Approximation::exp>},
      {"log", kOnSimt, &CompileApproximate<Log, Approximation::log>},
      {"sqrt", kOnSimt, &CompileApproximate<Sqrt, Approximation::sqrt>},
      {"sin", kOnSimt, &CompileApproximate<Sin, Approximation::sin>},
      {"cos", kOnSimt, &CompileApproximate<Cos, Approximation::cos>},
      {"floor", kOnSimt, &CompileFloatUnary<Floor>},
      {"ceil", kOnSimt, &CompileFloatUnary<Ceil>},
      {"rint", kOnSimt, &CompileFloatUnary<Rint>},
      {"round", kOnSimt, &CompileFloatUnary<RoundAway>},
      {"fma", kOnSimt, &CompileFma},
      {"cmp", kOnSimt, &CompileCmp},
      {"select", kOnSimt, &CompileSelect},
      {"cast", kOnSimt, &CompileCast},
      {"bitcast", kOnSimt, &CompileBitcast},
      {"castptr", kOnSimt, &CompileCastPtr},
      {"addptr", kOnSimt, &CompileAddPtr},
      {"get_tid_x", kOnSimt, &CompileThreadIndex<0>},
      {"get_tid_y", kOnSimt, &CompileThreadIndex<1>},
      {"get_tid_z", kOnSimt, &CompileThreadIndex<2>},
      {"get_block_dim_x", kUniform, &CompileBlockDim<0>},
      {"get_block_dim_y", kUniform, &CompileBlockDim<1>},
      {"get_block_dim_z", kUniform, &CompileBlockDim<2>},
      {"get_laneid", kOnSimt, &CompileLaneIndex},
      {"get_lanemask_eq", kOnSimt, &CompileQuery<&LaneMask<LaneSet::kEqual>>},
      {"get_lanemask_lt", kOnSimt, &CompileQuery<&LaneMask<LaneSet::kBelow>>},
      {"get_lanemask_le", kOnSimt, &CompileQuery<&LaneMask<LaneSet::kUpTo>>},
      {"get_lanemask_gt", kOnSimt, &CompileQuery<&LaneMask<LaneSet::kAbove>>},
      {"get_lanemask_ge", kOnSimt, &CompileQuery<&LaneMask<LaneSet::kFrom>>},
      {"get_clock32", kOnSimt, &CompileQuery<&Clock<int32_t>>},
      {"get_clock64", kOnSimt, &CompileClock64},
      {"get_veccoreid", kOnSimt, &CompileQuery<&CoreNumber>},
      {"get_block_idx_x", kUniform, &CompileGrid<0>},
      {"get_block_idx_y", kUniform, &CompileGrid<0>},
      {"get_block_idx_z", kUniform, &CompileGrid<0>},
      {"get_grid_dim_x", kUniform, &CompileGrid<1>},
      {"get_grid_dim_y", kUniform, &CompileGrid<1>},
      {"get_grid_dim_z", kUniform, &CompileGrid<1>},
      {"syncthreads", kOnSimt, &CompileSync},
      {"threadfence", kOnSimt, &CompileFence},
      {"threadfence_block", kOnSimt, &CompileFence},
  };
  return table;
}

}  // namespace pto::engine
