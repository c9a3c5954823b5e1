// SIMT atomics on GM and UB: threads in ascending order, each gets the old value.
//
// UB belongs to one core, so plain updates do. GM is shared by the cores, which run at the same time on host threads:
// updates are atomic on the host, and where the order of the cores can be seen (a used old value, exch, cas, sums of
// floats) a core first waits until all lower blocks have stopped. Results are those of running block after block.
#include <algorithm>
#include <string>

#include "atomic.h"
#include "builder.h"
#include "core.h"
#include "dispatch.h"

namespace pto::engine {
namespace {

template <Space kSpace, class T>
uint8_t* Address(const Context& c, const Inst* in, uint64_t pointer, int thread) {
  constexpr int64_t kBytes = sizeof(T);
  try {
    if constexpr (kSpace == Space::kUb) return c.UbPlace(in, pointer, 0, kBytes, kBytes);
    uint8_t* address = c.GmPlace(in, pointer, 0, kBytes, Access::kAtomic, kBytes);
    if (OffsetOf(pointer) & (kBytes - 1)) c.FailAlignment(in, OffsetOf(pointer), kBytes);
    if (reinterpret_cast<uintptr_t>(address) & (kBytes - 1))
      c.Fail(in, "the tensor itself is not aligned to its elements");
    return address;
  } catch (const Error& e) {
    c.Fail(in, e.message + " (thread " + std::to_string(thread) + ")");
  }
}

// d: old values, a: pointers, b: values, c: whether the old values are used, e: compared values (cas), flag: the order
// of the cores matters
template <Space kSpace, class T, class F, bool kCompare>
const Inst* Atomic(Context& c, const Inst* in) {
  const uint64_t* pointer = c.V<uint64_t>(in->a);
  const T *value = c.V<T>(in->b), *compared = kCompare ? c.V<T>(in->e) : nullptr;
  T* d = c.V<T>(in->d);
  if (kSpace == Space::kGm && in->flag) c.core->AwaitTurn();
  for (int i = c.mask.lo; i < c.mask.hi; ++i) {
    if (!c.mask.all && !c.mask.active[i]) continue;
    uint8_t* address = Address<kSpace, T>(c, in, pointer[i], i);
    if (__builtin_expect(c.monitor != nullptr, 0)) c.addresses[i] = address - (kSpace == Space::kUb ? c.ub : nullptr);
    const T x = value[i];
    const auto next = [&](T old) {
      if constexpr (kCompare) return BitCast<BitsOf<T>>(old) == BitCast<BitsOf<T>>(compared[i]) ? x : old;
      return F::Do(old, x);
    };
    d[i] = kSpace == Space::kGm ? AtomicUpdate<T>(address, next) : PlainUpdate<T>(address, next);
  }
  if (__builtin_expect(c.monitor != nullptr, 0)) {
    c.monitor->TouchLanes(c, in,
                          {kSpace == Space::kGm, 0, kSpace == Space::kUb ? c.ub : nullptr, c.addresses,
                           static_cast<int64_t>(sizeof(T)), Access::kAtomic, nullptr, sizeof(T)});
  }
  return in + 1;
}

enum Types { kAll, kInts };

template <Space kSpace, class F, bool kCompare, Types kTypes>
Handler Choose(DType t) {
  auto pick = [](auto tag) -> Handler { return &Atomic<kSpace, typename decltype(tag)::Type, F, kCompare>; };
  switch (t) {
    case DType::kI32:
      return pick(Tag<int32_t>());
    case DType::kU32:
      return pick(Tag<uint32_t>());
    case DType::kI64:
      return kSpace == Space::kGm ? pick(Tag<int64_t>()) : nullptr;
    case DType::kU64:
      return kSpace == Space::kGm ? pick(Tag<uint64_t>()) : nullptr;
    default:
      if constexpr (kTypes == kAll) return ForFloat(t, pick);
      return nullptr;
  }
}

template <class F, bool kCompare, Types kTypes, bool kSeesOrder>
void CompileAtomic(Builder& b, const Op& op) {
  b.ExpectCounts(op, kCompare ? 3 : 2, 1);
  const uint32_t pointer = op.operands[0], value = op.operands.back(), compared = op.operands[1];
  b.ExpectPointer(pointer);
  const ValueType& p = b.Type(pointer);
  for (size_t i = 1; i < op.operands.size(); ++i) {
    b.ExpectScalar(op.operands[i]);
    b.Expect(b.Type(op.operands[i]).dtype == p.dtype,
             std::string("a ") + Name(b.Type(op.operands[i]).dtype) + " with a pointer to " + Name(p.dtype));
  }
  b.ExpectSame(value, op.results[0]);
  b.code().narrowest = std::min(b.code().narrowest, ByteSize(p.dtype));
  b.code().writes_gm |= p.space == Space::kGm;
  DType t = p.dtype;
  const std::string signedness = b.TextAttribute(op, "signedness", "");
  b.Expect(signedness.empty() || signedness == "signed" || signedness == "unsigned",
           "unknown signedness " + signedness);
  if (signedness == "unsigned") t = Signless(t);
  if (signedness == "signed" && t == DType::kU32) t = DType::kI32;
  if (signedness == "signed" && t == DType::kU64) t = DType::kI64;
  Handler h = nullptr;
  if (p.space == Space::kGm)
    h = Choose<Space::kGm, F, kCompare, kTypes>(t);
  else if (p.space == Space::kUb)
    h = Choose<Space::kUb, F, kCompare, kTypes>(t);
  else
    b.Fail(std::string("no atomics in space ") + Name(p.space));
  if (!h) b.Fail(std::string("atomics on ") + Name(p.dtype) + " in " + Name(p.space) + " are not supported");
  const bool float_sum = IsFloat(t) && (std::is_same_v<F, Combined<Add>> || std::is_same_v<F, Combined<Sub>>);
  const bool ordered = p.space == Space::kGm && (kSeesOrder || float_sum || b.IsUsed(op.results[0]));
  if (ordered) b.scope().function->ordered = true;
  const uint32_t a = b.Lanes(pointer), x = b.Lanes(value), y = kCompare ? b.Lanes(compared) : 0;
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = a, in.b = x, in.c = b.IsUsed(op.results[0]), in.e = y, in.flag = ordered;
}

}  // namespace

const OpTable& SimtAtomicOps() {
  static const OpTable table = {
      {"atomic_add", kOnSimt, &CompileAtomic<Combined<Add>, false, kAll, false>},
      {"atomic_sub", kOnSimt, &CompileAtomic<Combined<Sub>, false, kAll, false>},
      {"atomic_max", kOnSimt, &CompileAtomic<Combined<Max>, false, kAll, false>},
      {"atomic_min", kOnSimt, &CompileAtomic<Combined<Min>, false, kAll, false>},
      {"atomic_and", kOnSimt, &CompileAtomic<Combined<And>, false, kInts, false>},
      {"atomic_or", kOnSimt, &CompileAtomic<Combined<Or>, false, kInts, false>},
      {"atomic_xor", kOnSimt, &CompileAtomic<Combined<Xor>, false, kInts, false>},
      {"atomic_exch", kOnSimt, &CompileAtomic<Exchange, false, kAll, true>},
      {"atomic_cas", kOnSimt, &CompileAtomic<Exchange, true, kAll, true>},
  };
  return table;
}

}  // namespace pto::engine
