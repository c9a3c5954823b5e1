// Read-modify-write on memory that other cores may use at the same time.
#pragma once

#include <cstring>

#include "arith.h"

namespace pto::engine {

struct Exchange {
  template <class T>
  static T Do(T, T value) {
    return value;
  }
};
template <class F>
struct Combined {
  template <class T>
  static T Do(T old, T value) {
    return Apply2<F>(old, value);
  }
};

template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// *address = next(old) as one step; returns old. The address is aligned to T.
template <class T, class Next>
inline T AtomicUpdate(uint8_t* address, Next next) {
  using U = BitsOf<T>;
  U* p = reinterpret_cast<U*>(address);
  U seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  for (;;) {
    const T old = BitCast<T>(seen);
    if (__atomic_compare_exchange_n(p, &seen, BitCast<U>(next(old)), true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return old;
  }
}

// The same where no other core can interfere.
template <class T, class Next>
inline T PlainUpdate(uint8_t* address, Next next) {
  T old;
  std::memcpy(&old, address, sizeof(T));
  const T now = next(old);
  std::memcpy(address, &now, sizeof(T));
  return old;
}

}  // namespace pto::engine
