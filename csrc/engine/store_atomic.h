// Stores to GM that combine with what is there (set_atomic_*, atomic=).
#pragma once

#include "atomic.h"
#include "commands.h"

namespace pto::engine {

// n bytes combined with those in GM, element by element.
template <class T, class F>
void Combine(const CommandUnit& u, uint8_t* to, const uint8_t* from, int64_t n) {
  constexpr int64_t kBytes = sizeof(T);
  if (n % kBytes || reinterpret_cast<uintptr_t>(to) % kBytes) {
    u.Fail("an atomic store of " + std::to_string(kBytes) + "-byte elements is not a whole number of aligned elements");
  }
  for (int64_t i = 0; i < n; i += kBytes) {
    T x;
    std::memcpy(&x, from + i, sizeof(T));
    AtomicUpdate<T>(to + i, [x](T old) { return Apply2<F>(old, x); });
  }
}

template <class F>
void CombineAs(const CommandUnit& u, DType t, uint8_t* to, const uint8_t* from, int64_t n) {
  switch (t) {
    case DType::kF32:
      return Combine<float, F>(u, to, from, n);
    case DType::kF16:
      return Combine<F16, F>(u, to, from, n);
    case DType::kBF16:
      return Combine<BF16, F>(u, to, from, n);
    case DType::kI32:
      return Combine<int32_t, F>(u, to, from, n);
    case DType::kI16:
      return Combine<int16_t, F>(u, to, from, n);
    default:
      return Combine<int8_t, F>(u, to, from, n);
  }
}

inline void CombineRow(const CommandUnit& u, const StoreAtomic& mode, uint8_t* to, const uint8_t* from, int64_t n) {
  switch (mode.operation) {
    case StoreAtomic::kAdd:
      return CombineAs<Add>(u, mode.type, to, from, n);
    case StoreAtomic::kMax:
      return CombineAs<Maximum>(u, mode.type, to, from, n);
    case StoreAtomic::kMin:
      return CombineAs<Minimum>(u, mode.type, to, from, n);
  }
}

}  // namespace pto::engine
