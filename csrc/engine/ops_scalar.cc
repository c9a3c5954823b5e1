// Scalar arithmetic, comparison, casts and queries: of the scalar unit, and inside vector functions.
#include <algorithm>

#include "approximate.h"
#include "arith.h"
#include "builder.h"
#include "convert.h"
#include "core.h"
#include "dispatch.h"
#include "scalar_words.h"

namespace pto::engine {
namespace {

template <class F, class T>
const Inst* Unary(Context& c, const Inst* in) {
  if constexpr (Perturbs<F, T>()) {
    if (c.perturbed) {
      c.S<T>(in->d) = F::Perturbed(c.seed, c.S<T>(in->a));
      return in + 1;
    }
  }
  c.S<T>(in->d) = Apply1<F>(c.S<T>(in->a));
  return in + 1;
}

template <class F, class T>
const Inst* Binary(Context& c, const Inst* in) {
  if constexpr (Perturbs<F, T>()) {
    if (c.perturbed) {
      c.S<T>(in->d) = F::Perturbed(c.seed, c.S<T>(in->a), c.S<T>(in->b));
      return in + 1;
    }
  }
  c.S<T>(in->d) = Apply2<F>(c.S<T>(in->a), c.S<T>(in->b));
  return in + 1;
}

template <class F, class T>
const Inst* Division(Context& c, const Inst* in) {
  if constexpr (!kIsFloat<T>) {
    if (c.S<T>(in->b) == 0) c.Fail(in, "division by zero");
  }
  return Binary<F, T>(c, in);
}

template <class T>
const Inst* Fma(Context& c, const Inst* in) {
  c.S<T>(in->d) = MultiplyAdd(c.S<T>(in->a), c.S<T>(in->b), c.S<T>(in->c));
  return in + 1;
}

template <class F, class T>
const Inst* Cmp(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = Compare<F>(c.S<T>(in->a), c.S<T>(in->b));
  return in + 1;
}

const Inst* Select(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = c.S<uint64_t>(c.S<uint8_t>(in->a) ? in->b : in->c);
  return in + 1;
}

const Inst* Copy(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = c.S<uint64_t>(in->a);
  return in + 1;
}

template <class S, class D>
const Inst* Cast(Context& c, const Inst* in) {
  c.S<D>(in->d) = ConvertNumber<D>(c.S<S>(in->a), static_cast<Rounding>(in->e), in->flag != 0);
  return in + 1;
}

// To i1: the low bit, as a truncation keeps it.
const Inst* CastToBit(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = c.S<uint64_t>(in->a) & 1;
  return in + 1;
}

template <class F>
Handler NumberHandler(DType t) {
  return ForNumber(t, [](auto tag) -> Handler { return &Binary<F, typename decltype(tag)::Type>; });
}

void Emit2(Builder& b, const Op& op, Handler h) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t x = b.Scalar(op.operands[0]), y = b.Scalar(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = x, in.b = y;
}

template <class F>
void CompileNumber(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  Emit2(b, op, NumberHandler<F>(b.Type(op.operands[0]).dtype));
}

template <class F>
void CompileDivision(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  Emit2(b, op, ForNumber(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler {
          return &Division<F, typename decltype(tag)::Type>;
        }));
}

template <class F>
void CompileInteger(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  const DType t = IntegerType<F>(b.Type(op.operands[0]).dtype);
  Emit2(b, op, ForInteger(t, [](auto tag) -> Handler { return &Binary<F, typename decltype(tag)::Type>; }));
}

template <class F>
void CompileFloat2(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  Emit2(b, op, ForFloat(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler {
          return &Binary<F, typename decltype(tag)::Type>;
        }));
}

void Emit1(Builder& b, const Op& op, Handler h) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t x = b.Scalar(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = x;
}

template <class F>
void CompileNumber1(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  Emit1(b, op, ForNumber(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler {
          return &Unary<F, typename decltype(tag)::Type>;
        }));
}

template <class F>
void CompileFloat1(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  Emit1(b, op, ForFloat(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler {
          return &Unary<F, typename decltype(tag)::Type>;
        }));
}

// Operations of a simt region whose operands are the same for all threads are computed once, as approximately as those
// that are not. Nothing is documented of the scalar units: there the host's results stand.
template <class F, Approximation kOp>
void CompileApproximate1(Builder& b, const Op& op) {
  if (b.unit() == kOnSimt)
    CompileFloat1<Hardware<F, kOp>>(b, op);
  else
    CompileFloat1<F>(b, op);
}

void CompileApproximateDivision(Builder& b, const Op& op) {
  if (b.unit() == kOnSimt && b.TextAttribute(op, "precision", "").empty())
    CompileDivision<Hardware<Div, Approximation::div>>(b, op);
  else
    CompileDivision<Div>(b, op);
}

void CompileApproximatePower(Builder& b, const Op& op) {
  if (b.unit() == kOnSimt)
    CompileFloat2<Hardware<Pow, Approximation::pow>>(b, op);
  else
    CompileFloat2<Pow>(b, op);
}

void CompileFma(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectScalar(op.operands[0]);
  for (int i = 1; i < 3; ++i) b.ExpectSame(op.operands[0], op.operands[i]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t x = b.Scalar(op.operands[0]), y = b.Scalar(op.operands[1]), z = b.Scalar(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(
      ForNumber(b.Type(op.operands[0]).dtype, [](auto tag) -> Handler { return &Fma<typename decltype(tag)::Type>; }));
  in.d = d.slot, in.a = x, in.b = y, in.c = z;
}

void CompileCmp(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  const ValueType& t = b.Type(op.operands[0]);
  b.Expect(t.kind == Kind::kScalar || t.kind == Kind::kPointer, "expected scalars");
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.Expect(b.Type(op.results[0]).dtype == DType::kI1, "the result of cmp is an i1");
  const DType d = ComparedType(t);
  const Handler h = ForPredicate(b, b.TextAttribute(op, "pred", ""), [&](auto f) -> Handler {
    return ForNumber(d, [](auto tag) -> Handler { return &Cmp<decltype(f), typename decltype(tag)::Type>; });
  });
  const uint32_t x = b.Scalar(op.operands[0]), y = b.Scalar(op.operands[1]);
  const Place place = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = place.slot, in.a = x, in.b = y;
}

void CompileSelect(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.Expect(b.Type(op.operands[0]).kind == Kind::kScalar && b.Type(op.operands[0]).dtype == DType::kI1,
           "the condition is not an i1");
  b.ExpectSame(op.operands[1], op.operands[2]);
  b.ExpectSame(op.operands[1], op.results[0]);
  const Kind k = b.Type(op.operands[1]).kind;
  b.Expect(k == Kind::kScalar || k == Kind::kPointer, "expected scalars or pointers");
  const uint32_t x = b.Scalar(op.operands[0]), y = b.Scalar(op.operands[1]), z = b.Scalar(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&Select);
  in.d = d.slot, in.a = x, in.b = y, in.c = z;
}

void CompileCast(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectScalar(op.results[0]);
  const DType s = b.Type(op.operands[0]).dtype, d = b.Type(op.results[0]).dtype;
  const CastWords words = ParseCastWords(b, op, s, d);
  const uint32_t x = b.Scalar(op.operands[0]);
  const Place place = b.Define(op.results[0]);
  Handler h = nullptr;
  if (d == DType::kI1) {
    h = IsInteger(s) ? &CastToBit : nullptr;
  } else {
    h = ForNumber(Stored(s), [d](auto from) -> Handler {
      return ForNumber(
          d, [](auto to) -> Handler { return &Cast<typename decltype(from)::Type, typename decltype(to)::Type>; });
    });
  }
  Inst& in = b.Emit(h);
  in.d = place.slot, in.a = x, in.e = static_cast<uint32_t>(words.rounding), in.flag = words.saturate;
}

void CompileBitcast(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectScalar(op.results[0]);
  b.Expect(ByteSize(b.Type(op.operands[0]).dtype) == ByteSize(b.Type(op.results[0]).dtype), "the widths differ");
  const Place x = b.Find(op.operands[0]);
  if (x.constant) {
    b.DefineConstant(op.results[0], x.bits);
    return;
  }
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&Copy);
  in.d = d.slot, in.a = x.slot;
}

// --- pointers ---

// imm: bytes per element
const Inst* AddPtr(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = AddBytes(c.S<uint64_t>(in->a), c.S<int64_t>(in->b) * in->imm);
  return in + 1;
}

void CompileAddPtr(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectPointer(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t p = b.Scalar(op.operands[0]), n = b.Int64(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&AddPtr);
  in.d = d.slot, in.a = p, in.b = n, in.imm = ByteSize(b.Type(op.operands[0]).dtype);
}

// imm: bytes per element
const Inst* GmFromAddress(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = c.global->PointerTo(c.S<uint64_t>(in->a), in->imm);
  return in + 1;
}
const Inst* GmToAddress(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = c.global->AddressOf(c.S<uint64_t>(in->a));
  return in + 1;
}

void CompileCastPtr(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  const ValueType &s = b.Type(op.operands[0]), &d = b.Type(op.results[0]);
  const PointerCast cast = ParsePointerCast(b, s, d);
  const uint32_t x = s.kind == Kind::kPointer ? b.Scalar(op.operands[0]) : b.Int64(op.operands[0]);
  const Place place = b.Find(op.operands[0]);
  if (place.constant && cast == PointerCast::kSameBits) {
    b.DefineConstant(op.results[0], s.kind == Kind::kPointer ? place.bits : b.code().image[x / 8]);
    return;
  }
  const Place p = b.Define(op.results[0]);
  Inst& in = b.Emit(cast == PointerCast::kFromAddress ? &GmFromAddress
                    : cast == PointerCast::kToAddress ? &GmToAddress
                                                      : &Copy);
  in.d = p.slot, in.a = x, in.imm = ByteSize(d.dtype);
}

// --- queries ---

const Inst* BlockIndex(Context& c, const Inst* in) {
  c.S<int64_t>(in->d) = c.core->block;
  return in + 1;
}
const Inst* BlockCount(Context& c, const Inst* in) {
  c.S<int64_t>(in->d) = c.core->grid;
  return in + 1;
}
const Inst* SubBlockIndex(Context& c, const Inst* in) {
  c.S<int64_t>(in->d) = c.core->sub_block;
  return in + 1;
}
const Inst* SubBlockCount(Context& c, const Inst* in) {
  c.S<int64_t>(in->d) = c.core->sub_blocks;
  return in + 1;
}

template <Handler H>
void CompileQuery(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  b.ExpectInteger(op.results[0]);
  const Place d = b.Define(op.results[0]);
  b.Emit(H).d = d.slot;
}

// In a kernel for one kind of core every core is a block of its own, and so is the cube core among cube cores.
template <Handler H, int N>
void CompileSubBlockQuery(Builder& b, const Op& op) {
  if (b.scope().mixed && b.scope().core == CoreKind::kVector) return CompileQuery<H>(b, op);
  b.ExpectCounts(op, 0, 1);
  b.ExpectInteger(op.results[0]);
  b.DefineConstant(op.results[0], N);
}

}  // namespace

PointerCast ParsePointerCast(Builder& b, const ValueType& s, const ValueType& d) {
  const bool from_int = s.kind == Kind::kScalar && IsInteger(s.dtype),
             to_int = d.kind == Kind::kScalar && IsInteger(d.dtype);
  b.Expect(s.kind == Kind::kPointer || from_int, "castptr takes a pointer or an integer");
  b.Expect(d.kind == Kind::kPointer || (to_int && ByteSize(d.dtype) == 8),
           "castptr gives a pointer or a 64-bit integer");
  b.Expect(s.kind == Kind::kPointer || d.kind == Kind::kPointer, "castptr needs a pointer on one side");
  if (s.kind == Kind::kPointer && d.kind == Kind::kPointer) {
    b.Expect(s.space == d.space, std::string("castptr from space ") + Name(s.space) + " to space " + Name(d.space));
  }
  if (from_int) b.Expect(d.space != Space::kStack, "a stack pointer cannot be made from an integer");
  if (from_int && d.space == Space::kGm) return PointerCast::kFromAddress;
  if (to_int && s.space == Space::kGm) return PointerCast::kToAddress;
  return PointerCast::kSameBits;
}

CastWords ParseCastWords(Builder& b, const Op& op, DType from, DType to) {
  CastWords w;
  // Without words: nearest even between floats and from integers; toward zero and clamped to integers.
  w.rounding = IsFloat(from) && IsInteger(to) ? Rounding::kZ : Rounding::kR;
  w.saturate = IsFloat(from) && IsInteger(to);
  const std::string rounding = b.TextAttribute(op, "rounding", "");
  if (!rounding.empty()) b.Expect(ParseRounding(rounding, &w.rounding), "unsupported rounding " + rounding);
  const std::string saturation = b.TextAttribute(op, "saturation", "");
  if (saturation == "sat" || saturation == "SAT" || saturation == "on")
    w.saturate = true;
  else if (saturation == "nosat" || saturation == "NOSAT" || saturation == "off")
    w.saturate = false;
  else
    b.Expect(saturation.empty(), "unknown saturation " + saturation);
  return w;
}

const OpTable& ScalarOps() {
  static const OpTable table = {
      {"add", kScalarAnywhere, &CompileNumber<Add>},
      {"sub", kScalarAnywhere, &CompileNumber<Sub>},
      {"mul", kScalarAnywhere, &CompileNumber<Mul>},
      {"div", kScalarAnywhere, &CompileApproximateDivision},
      {"floordiv", kScalarAnywhere, &CompileDivision<FloorDiv>},
      {"rem", kScalarAnywhere, &CompileDivision<Rem>},
      {"and", kScalarAnywhere, &CompileInteger<And>},
      {"or", kScalarAnywhere, &CompileInteger<Or>},
      {"xor", kScalarAnywhere, &CompileInteger<Xor>},
      {"shl", kScalarAnywhere, &CompileInteger<Shl>},
      {"shr", kScalarAnywhere, &CompileInteger<Shr>},
      {"min", kScalarAnywhere, &CompileNumber<Min>},
      {"max", kScalarAnywhere, &CompileNumber<Max>},
      {"minimum", kScalarAnywhere, &CompileFloat2<Minimum>},
      {"maximum", kScalarAnywhere, &CompileFloat2<Maximum>},
      {"pow", kScalarAnywhere, &CompileApproximatePower},
      {"neg", kScalarAnywhere, &CompileNumber1<Neg>},
      {"abs", kScalarAnywhere, &CompileNumber1<Abs>},
      {"exp", kScalarAnywhere, &CompileApproximate1<Exp, Approximation::exp>},
      {"log", kScalarAnywhere, &CompileApproximate1<Log, Approximation::log>},
      {"sqrt", kScalarAnywhere, &CompileApproximate1<Sqrt, Approximation::sqrt>},
      {"sin", kScalarAnywhere, &CompileApproximate1<Sin, Approximation::sin>},
      {"cos", kScalarAnywhere, &CompileApproximate1<Cos, Approximation::cos>},
      {"floor", kScalarAnywhere, &CompileFloat1<Floor>},
      {"ceil", kScalarAnywhere, &CompileFloat1<Ceil>},
      {"rint", kScalarAnywhere, &CompileFloat1<Rint>},
      {"round", kScalarAnywhere, &CompileFloat1<RoundAway>},
      {"fma", kScalarAnywhere, &CompileFma},
      {"cmp", kScalarAnywhere, &CompileCmp},
      {"select", kScalarAnywhere, &CompileSelect},
      {"cast", kScalarAnywhere, &CompileCast},
      {"bitcast", kScalarAnywhere, &CompileBitcast},
      {"castptr", kScalarAnywhere, &CompileCastPtr},
      {"addptr", kScalarAnywhere, &CompileAddPtr},
      {"get_block_idx", kScalarAnywhere, &CompileQuery<&BlockIndex>},
      {"get_block_num", kScalarAnywhere, &CompileQuery<&BlockCount>},
      {"get_subblock_idx", kScalarAnywhere, &CompileSubBlockQuery<&SubBlockIndex, 0>},
      {"get_subblock_num", kScalarAnywhere, &CompileSubBlockQuery<&SubBlockCount, 1>},
  };
  return table;
}

}  // namespace pto::engine
