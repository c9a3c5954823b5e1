// SIMT loads and stores: per-thread addresses, checked for the active threads only.
#include <algorithm>
#include <cstring>

#include "builder.h"
#include "clones.h"
#include "core.h"
#include "dispatch.h"
#include "simt.h"

namespace pto::engine {
namespace {

// What one launch of an access may touch: data[0 .. limit] are valid start offsets. No data: a pointer by address, for
// which every thread is checked by itself.
struct Window {
  uint8_t* data;
  int64_t base;   // offset of the pointer
  int64_t limit;  // last valid offset
};

template <Space kSpace>
Window Open(const Context& c, const Inst* in, uint64_t pointer, int64_t bytes) {
  if constexpr (kSpace == Space::kUb) {
    return {c.ub, OffsetOf(pointer), c.ub_bytes - bytes};
  } else {
    const uint32_t t = ObjectOf(pointer);
    if (t == kByAddress) return {nullptr, 0, 0};
    if (t - 1 >= c.n_tensors) c.FailGm(in, pointer, OffsetOf(pointer), bytes);
    const Tensor& tensor = c.tensors[t - 1];
    return {tensor.data, OffsetOf(pointer),
            tensor.extent < 0 ? static_cast<int64_t>(kOffsetMask >> 1) : tensor.extent - bytes};
  }
}

template <Space kSpace>
[[noreturn]] void FailLane(const Context& c, const Inst* in, uint64_t pointer, int64_t offset, int64_t bytes,
                           int64_t alignment, int thread) {
  try {
    if (offset & (alignment - 1)) c.FailAlignment(in, offset, alignment);
    if constexpr (kSpace == Space::kUb)
      c.FailUb(in, offset, bytes);
    else
      c.FailGm(in, pointer, offset, bytes);
  } catch (const Error& e) {
    c.Fail(in, e.message + " (thread " + std::to_string(thread) + ")");
  }
}

// One thread's access through a pointer by address.
uint8_t* LaneByAddress(const Context& c, const Inst* in, uint64_t pointer, int64_t delta, int64_t bytes, Access access,
                       int64_t alignment, int thread) {
  try {
    return c.GmByAddress(in, pointer, delta, bytes, access, alignment);
  } catch (const Error& e) {
    c.Fail(in, e.message + " (thread " + std::to_string(thread) + ")");
  }
}

// What a store writes; d is its lane array.
template <Access kAccess>
const uint8_t* Values(const Context& c, const Inst* in) {
  return kAccess == Access::kWrite ? c.v + in->d : nullptr;
}

// Offsets of all active threads into c.addresses. Pointer a and offset b; kVaryingPointer: a is a lane array and
// `pointer` unused. Bounds and alignment are checked here, so the access loops need no checks.
template <Space kSpace, Access kAccess, class Offset>
uint8_t* Addresses(Context& c, const Inst* in, int64_t element, int64_t bytes, int64_t alignment) {
  const uint64_t pointer = c.S<uint64_t>(in->a);
  const Window w = Open<kSpace>(c, in, pointer, bytes);
  const Offset* off = c.V<Offset>(in->b);
  int64_t* address = c.addresses;
  const int lo = c.mask.lo, hi = c.mask.hi;
  if (kSpace == Space::kGm && __builtin_expect(!w.data, 0)) {
    uint8_t* first = nullptr;
    for (int i = lo; i < hi; ++i) {
      if (!c.mask.all && !c.mask.active[i]) continue;
      uint8_t* at = LaneByAddress(c, in, pointer, static_cast<int64_t>(off[i]) * element, bytes, kAccess, alignment, i);
      if (!first) first = at;
      address[i] = at - first;
    }
    if (c.monitor)
      c.monitor->TouchLanes(c, in, {true, 0, first, address, bytes, kAccess, Values<kAccess>(c, in), element});
    return first;
  }
  const auto told = [&] {
    if (__builtin_expect(c.monitor != nullptr, 0)) {
      const uint32_t tensor = kSpace == Space::kGm ? ObjectOf(pointer) : 0;
      c.monitor->TouchLanes(
          c, in, {kSpace == Space::kGm, tensor, w.data, address, bytes, kAccess, Values<kAccess>(c, in), element});
    }
    return w.data;
  };
  if (c.mask.all) {
    int64_t bad = 0;
    for (int i = lo; i < hi; ++i) {
      const int64_t a = w.base + static_cast<int64_t>(off[i]) * element;
      address[i] = a;
      bad |= a | (w.limit - a);
      bad |= (a & (alignment - 1)) ? INT64_MIN : 0;
    }
    if (__builtin_expect(bad >= 0, 1)) return told();
  }
  for (int i = lo; i < hi; ++i) {
    if (!c.mask.all && !c.mask.active[i]) continue;
    const int64_t a = w.base + static_cast<int64_t>(off[i]) * element;
    address[i] = a;
    if (a < 0 || a > w.limit || (a & (alignment - 1))) FailLane<kSpace>(c, in, pointer, a, bytes, alignment, i);
  }
  return told();
}

template <class F>
inline void ForActive(const Context& c, F f) {
  if (c.mask.all) {
    for (int i = c.mask.lo; i < c.mask.hi; ++i) f(i);
  } else {
    for (int i = c.mask.lo; i < c.mask.hi; ++i) {
      if (c.mask.active[i]) f(i);
    }
  }
}

// d: value lane array, a: pointer, b: offset lane array, c: bytes of the alignment, e: components

template <Space kSpace, class T, class Offset>
PTO_CLONES const Inst* Load(Context& c, const Inst* in) {
  const int64_t n = in->e;
  const uint8_t* data =
      Addresses<kSpace, Access::kRead, Offset>(c, in, sizeof(T), static_cast<int64_t>(sizeof(T)) * n, in->c);
  for (int64_t k = 0; k < n; ++k) {
    T* d = c.V<T>(in->d) + k * c.threads;
    const uint8_t* from = data + k * static_cast<int64_t>(sizeof(T));
    ForActive(c, [&](int i) { std::memcpy(d + i, from + c.addresses[i], sizeof(T)); });
  }
  return in + 1;
}

template <Space kSpace, class T, class Offset>
PTO_CLONES const Inst* Store(Context& c, const Inst* in) {
  const int64_t n = in->e;
  uint8_t* data =
      Addresses<kSpace, Access::kWrite, Offset>(c, in, sizeof(T), static_cast<int64_t>(sizeof(T)) * n, in->c);
  // Threads in order: with several writers the last thread wins.
  if (n == 1) {
    const T* s = c.V<T>(in->d);
    ForActive(c, [&](int i) { std::memcpy(data + c.addresses[i], s + i, sizeof(T)); });
  } else {
    ForActive(c, [&](int i) {
      for (int64_t k = 0; k < n; ++k) {
        std::memcpy(data + c.addresses[i] + k * static_cast<int64_t>(sizeof(T)), c.V<T>(in->d) + k * c.threads + i,
                    sizeof(T));
      }
    });
  }
  return in + 1;
}

// Pointers that differ between threads: a and b are lane arrays, b of i64.
template <Space kSpace, class T, bool kLoad>
PTO_CLONES const Inst* AccessAny(Context& c, const Inst* in) {
  const uint64_t* pointer = c.V<uint64_t>(in->a);
  const int64_t* off = c.V<int64_t>(in->b);
  const int64_t n = in->e, bytes = static_cast<int64_t>(sizeof(T)) * n;
  const auto place = [&](int i) {
    const Window w = Open<kSpace>(c, in, pointer[i], bytes);
    const int64_t delta = off[i] * static_cast<int64_t>(sizeof(T)), a = w.base + delta;
    uint8_t* first;
    if (kSpace == Space::kGm && __builtin_expect(!w.data, 0)) {
      first = LaneByAddress(c, in, pointer[i], delta, bytes, kLoad ? Access::kRead : Access::kWrite, in->c, i);
    } else {
      if (a < 0 || a > w.limit || (a & (in->c - 1))) FailLane<kSpace>(c, in, pointer[i], a, bytes, in->c, i);
      first = w.data + a;
    }
    return first;
  };
  if (__builtin_expect(c.monitor != nullptr, 0)) {
    uint8_t* const base = kSpace == Space::kUb ? c.ub : nullptr;
    ForActive(c,
              [&](int i) { c.addresses[i] = reinterpret_cast<intptr_t>(place(i)) - reinterpret_cast<intptr_t>(base); });
    c.monitor->TouchLanes(c, in,
                          {kSpace == Space::kGm, 0, base, c.addresses, bytes, kLoad ? Access::kRead : Access::kWrite,
                           Values<kLoad ? Access::kRead : Access::kWrite>(c, in), sizeof(T)});
  }
  ForActive(c, [&](int i) {
    uint8_t* const first = place(i);
    for (int64_t k = 0; k < n; ++k) {
      uint8_t* at = first + k * static_cast<int64_t>(sizeof(T));
      T* lane = c.V<T>(in->d) + k * c.threads + i;
      if (kLoad)
        std::memcpy(lane, at, sizeof(T));
      else
        std::memcpy(at, lane, sizeof(T));
    }
  });
  return in + 1;
}

// --- stack buffers: element e of thread t at base[e * threads + t] ---

template <class T, bool kLoad>
inline void MoveElement(Context& c, const Inst* in, T* base, int64_t k, int64_t element, int i) {
  T* lane = c.V<T>(in->d) + k * c.threads + i;
  T* at = base + element * c.threads + i;
  if (kLoad)
    *lane = *at;
  else
    *at = *lane;
}

// Same element in every thread: a and b are scalar slots.
template <class T, bool kLoad>
PTO_CLONES const Inst* StackUniform(Context& c, const Inst* in) {
  const uint64_t p = c.S<uint64_t>(in->a);
  const StackBuffer& buffer = c.Stack(in, p, c.threads, sizeof(T));
  const int64_t offset = OffsetOf(p) + c.S<int64_t>(in->b) * static_cast<int64_t>(sizeof(T));
  const int64_t element = offset / static_cast<int64_t>(sizeof(T)), n = in->e;
  if (offset < 0 || element + n > buffer.count || offset % static_cast<int64_t>(sizeof(T)))
    c.FailStack(in, element, buffer.count);
  T* base = reinterpret_cast<T*>(buffer.base);
  for (int64_t k = 0; k < n; ++k) {
    ForActive(c, [&](int i) { MoveElement<T, kLoad>(c, in, base, k, element + k, i); });
  }
  return in + 1;
}

// a and b are lane arrays
template <class T, bool kLoad>
PTO_CLONES const Inst* StackAny(Context& c, const Inst* in) {
  const uint64_t* pointer = c.V<uint64_t>(in->a);
  const int64_t* off = c.V<int64_t>(in->b);
  const int64_t n = in->e;
  ForActive(c, [&](int i) {
    const StackBuffer& buffer = c.Stack(in, pointer[i], c.threads, sizeof(T));
    const int64_t offset = OffsetOf(pointer[i]) + off[i] * static_cast<int64_t>(sizeof(T));
    const int64_t element = offset / static_cast<int64_t>(sizeof(T));
    if (offset < 0 || element + n > buffer.count || offset % static_cast<int64_t>(sizeof(T)))
      c.FailStack(in, element, buffer.count);
    for (int64_t k = 0; k < n; ++k) MoveElement<T, kLoad>(c, in, reinterpret_cast<T*>(buffer.base), k, element + k, i);
  });
  return in + 1;
}

// --- compilation ---

template <Space kSpace>
Handler Choose(int bytes, bool load, bool varying_pointer, bool wide_offset) {
  return ForWidth(bytes, [&](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    if (varying_pointer) return load ? &AccessAny<kSpace, T, true> : &AccessAny<kSpace, T, false>;
    if (wide_offset) return load ? &Load<kSpace, T, int64_t> : &Store<kSpace, T, int64_t>;
    return load ? &Load<kSpace, T, int32_t> : &Store<kSpace, T, int32_t>;
  });
}

Handler ChooseStack(int bytes, bool load, bool uniform) {
  return ForWidth(bytes, [&](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    if (uniform) return load ? &StackUniform<T, true> : &StackUniform<T, false>;
    return load ? &StackAny<T, true> : &StackAny<T, false>;
  });
}

void CompileAccess(Builder& b, const Op& op, bool load) {
  b.ExpectCounts(op, load ? 2 : 3, load ? 1 : 0);
  const uint32_t value = load ? op.results[0] : op.operands[0];
  const uint32_t pointer = op.operands[load ? 0 : 1], offset = op.operands[load ? 1 : 2];
  b.ExpectPointer(pointer);
  b.ExpectInteger(offset);
  const ValueType &p = b.Type(pointer), &v = b.Type(value);
  b.Expect(v.kind == Kind::kScalar || v.kind == Kind::kShortVector,
           "only scalars and short vectors can be loaded and stored");
  const int bytes = ByteSize(p.dtype);
  b.code().narrowest = std::min(b.code().narrowest, bytes);
  b.code().writes_gm |= !load && p.space == Space::kGm;
  b.Expect(ByteSize(v.dtype) == bytes, std::string("a ") + Name(v.dtype) + " through a pointer to " + Name(p.dtype));
  b.Expect(b.IntegerAttribute(op, "bypass", 0) == 0, "the uncached forms do not exist in a simt region");
  const uint32_t n = v.kind == Kind::kShortVector ? v.lanes : 1;
  // A packed access is aligned as a whole.
  uint32_t alignment = static_cast<uint32_t>(bytes);
  if ((n & (n - 1)) == 0 && alignment * n <= 16) alignment *= n;

  const bool stack = p.space == Space::kStack;
  const bool varying_pointer = b.IsVarying(pointer), uniform = !varying_pointer && !b.IsVarying(offset);
  Handler h = nullptr;
  uint32_t at, off;
  if (stack) {
    at = uniform ? b.Scalar(pointer) : b.Lanes(pointer);
    off = uniform ? b.Int64(offset) : b.Lanes64(offset);
    h = ChooseStack(bytes, load, uniform);
  } else {
    at = varying_pointer ? b.Lanes(pointer) : b.Scalar(pointer);
    const bool narrow = !varying_pointer && b.Type(offset).dtype == DType::kI32;
    off = narrow ? b.Lanes(offset) : b.Lanes64(offset);
    if (p.space == Space::kGm)
      h = Choose<Space::kGm>(bytes, load, varying_pointer, !narrow);
    else if (p.space == Space::kUb)
      h = Choose<Space::kUb>(bytes, load, varying_pointer, !narrow);
    else
      b.Fail(std::string("no access to space ") + Name(p.space));
  }
  const uint32_t d = load ? b.Define(value).slot : b.Lanes(value);
  Inst& in = b.Emit(h);
  in.d = d, in.a = at, in.b = off, in.c = alignment, in.e = n;
}

void CompileLoad(Builder& b, const Op& op) { CompileAccess(b, op, true); }
void CompileStore(Builder& b, const Op& op) { CompileAccess(b, op, false); }

}  // namespace

const OpTable& SimtMemoryOps() {
  static const OpTable table = {
      {"load", kOnSimt, &CompileLoad},
      {"store", kOnSimt, &CompileStore},
  };
  return table;
}

}  // namespace pto::engine
