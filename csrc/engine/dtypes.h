// Element types, value types and their codes in the program form.
#pragma once

#include <cstdint>

namespace pto::engine {

enum class DType : uint8_t {
  kNone = 0,
  kI1 = 1,
  kI8 = 2,
  kU8 = 3,
  kI16 = 4,
  kU16 = 5,
  kI32 = 6,
  kU32 = 7,
  kI64 = 8,
  kU64 = 9,
  kIndex = 10,
  kF16 = 11,
  kBF16 = 12,
  kF32 = 13,
  kF8E4M3 = 14,
  kF8E5M2 = 15,
  kF8E8M0 = 16,
  kHiF8 = 17,
  kF4E2M1x2 = 18,
  kF4E1M2x2 = 19,
};
constexpr int kDTypeCount = 20;

enum class Kind : uint8_t { kScalar = 0, kPointer = 1, kVector = 2, kMask = 3, kShortVector = 4, kAlignState = 5 };
constexpr int kKindCount = 6;

enum class Space : uint8_t {
  kNone = 0,
  kGm = 1,
  kUb = 2,
  kMat = 3,
  kLeft = 4,
  kRight = 5,
  kAcc = 6,
  kBias = 7,
  kScaling = 8,
  kStack = 9,
};
constexpr int kSpaceCount = 10;

struct ValueType {
  Kind kind = Kind::kScalar;
  DType dtype = DType::kNone;
  Space space = Space::kNone;
  uint32_t lanes = 0;

  bool operator==(const ValueType& o) const {
    return kind == o.kind && dtype == o.dtype && space == o.space && lanes == o.lanes;
  }
  bool operator!=(const ValueType& o) const { return !(*this == o); }
};

// Bytes of one element in memory. `i1` takes one byte.
constexpr int ByteSize(DType t) {
  switch (t) {
    case DType::kI1:
    case DType::kI8:
    case DType::kU8:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0:
    case DType::kHiF8:
    case DType::kF4E2M1x2:
    case DType::kF4E1M2x2:
      return 1;
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI32:
    case DType::kU32:
    case DType::kF32:
      return 4;
    case DType::kI64:
    case DType::kU64:
    case DType::kIndex:
      return 8;
    case DType::kNone:
      return 0;
  }
  return 0;
}

constexpr bool IsFloat(DType t) { return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32; }
constexpr bool IsInteger(DType t) { return t >= DType::kI1 && t <= DType::kIndex; }
constexpr bool IsUnsigned(DType t) {
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64 || t == DType::kI1;
}
constexpr bool IsSigned(DType t) { return IsInteger(t) && !IsUnsigned(t); }

const char* Name(DType t);
const char* Name(Space s);
const char* Name(Kind k);

}  // namespace pto::engine
