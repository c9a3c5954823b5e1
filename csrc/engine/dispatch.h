// From an element type to the C++ type its handlers are instantiated for.
#pragma once

#include "code.h"
#include "float16.h"

namespace pto::engine {

template <class T>
struct Tag {
  using Type = T;
};

// f(Tag<T>) for integers (i1 excluded), a null handler for any other type.
template <class F>
Handler ForInteger(DType t, F f) {
  switch (t) {
    case DType::kI8:
      return f(Tag<int8_t>());
    case DType::kU8:
      return f(Tag<uint8_t>());
    case DType::kI16:
      return f(Tag<int16_t>());
    case DType::kU16:
      return f(Tag<uint16_t>());
    case DType::kI32:
      return f(Tag<int32_t>());
    case DType::kU32:
      return f(Tag<uint32_t>());
    case DType::kI64:
    case DType::kIndex:
      return f(Tag<int64_t>());
    case DType::kU64:
      return f(Tag<uint64_t>());
    default:
      return nullptr;
  }
}

template <class F>
Handler ForFloat(DType t, F f) {
  switch (t) {
    case DType::kF16:
      return f(Tag<F16>());
    case DType::kBF16:
      return f(Tag<BF16>());
    case DType::kF32:
      return f(Tag<float>());
    default:
      return nullptr;
  }
}

template <class F>
Handler ForNumber(DType t, F f) {
  return IsFloat(t) ? ForFloat(t, f) : ForInteger(t, f);
}

// Only the width matters: f(Tag<unsigned type>).
template <class F>
Handler ForWidth(int bytes, F f) {
  switch (bytes) {
    case 1:
      return f(Tag<uint8_t>());
    case 2:
      return f(Tag<uint16_t>());
    case 4:
      return f(Tag<uint32_t>());
    case 8:
      return f(Tag<uint64_t>());
    default:
      return nullptr;
  }
}

// The type with the same bits but unsigned: for operations where signedness makes no difference.
constexpr DType Signless(DType t) {
  switch (t) {
    case DType::kI8:
      return DType::kU8;
    case DType::kI16:
      return DType::kU16;
    case DType::kI32:
      return DType::kU32;
    case DType::kI64:
    case DType::kIndex:
      return DType::kU64;
    default:
      return t;
  }
}

}  // namespace pto::engine
