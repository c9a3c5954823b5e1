// Attribute words that scalar, SIMT and SIMD operations share.
#pragma once

#include "arith.h"
#include "builder.h"
#include "convert.h"

namespace pto::engine {

struct CastWords {
  Rounding rounding = Rounding::kR;
  bool saturate = false;
};
CastWords ParseCastWords(Builder& b, const Op& op, DType from, DType to);

// What a castptr does to the bits: GM pointers know their tensor, integers are host addresses.
enum class PointerCast { kSameBits, kFromAddress, kToAddress };
PointerCast ParsePointerCast(Builder& b, const ValueType& from, const ValueType& to);

// Truth values are bytes of which the lowest bit counts.
constexpr DType Stored(DType t) { return t == DType::kI1 ? DType::kU8 : t; }
// Element type for which values of a type are compared, pointers by their bits.
inline DType ComparedType(const ValueType& t) { return t.kind == Kind::kPointer ? DType::kU64 : Stored(t.dtype); }
// Element type of the integer operation F: those on bits take truth values too.
template <class F>
constexpr DType IntegerType(DType t) {
  return std::is_same_v<F, And> || std::is_same_v<F, Or> || std::is_same_v<F, Xor> ? Stored(t) : t;
}

// f(Eq()) ... by the name of a comparison.
template <class F>
Handler ForPredicate(Builder& b, const std::string& name, F f) {
  if (name == "eq") return f(Eq());
  if (name == "ne") return f(Ne());
  if (name == "lt") return f(Lt());
  if (name == "le") return f(Le());
  if (name == "gt") return f(Gt());
  if (name == "ge") return f(Ge());
  b.Fail("unknown comparison " + name);
}

}  // namespace pto::engine
