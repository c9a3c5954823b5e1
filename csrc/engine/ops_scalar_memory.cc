// load, store and alloc_buffer of the scalar unit and of the scalar part of a vector function.
#include <algorithm>
#include <cstring>

#include "builder.h"
#include "core.h"
#include "dispatch.h"

namespace pto::engine {
namespace {

// Address of `n` elements of `bytes` at pointer a + offset b.
template <Space kSpace, Access kAccess>
uint8_t* Address(Context& c, const Inst* in, uint32_t pointer, uint32_t offset, int64_t bytes, int64_t n) {
  const uint64_t p = c.S<uint64_t>(pointer);
  const int64_t delta = c.S<int64_t>(offset) * bytes;
  if constexpr (kSpace == Space::kGm) {
    uint8_t* address = c.Gm(in, p, delta, bytes * n, kAccess, bytes);
    if ((OffsetOf(p) + delta) & (bytes - 1)) c.FailAlignment(in, OffsetOf(p) + delta, bytes);
    return address;
  } else if constexpr (kSpace == Space::kUb) {
    return c.Ub(in, p, delta, bytes * n, bytes, kAccess);
  } else {
    const StackBuffer& buffer = c.Stack(in, p, 1, static_cast<int>(bytes));
    const int64_t offset_bytes = OffsetOf(p) + delta;
    if (offset_bytes < 0 || offset_bytes + bytes * n > buffer.count * bytes || offset_bytes % bytes) {
      c.FailStack(in, offset_bytes / bytes, buffer.count);
    }
    return buffer.base + offset_bytes;
  }
}

template <Space kSpace, class T>
const Inst* Load(Context& c, const Inst* in) {
  std::memcpy(&c.S<T>(in->d), Address<kSpace, Access::kRead>(c, in, in->a, in->b, sizeof(T), 1), sizeof(T));
  return in + 1;
}
template <Space kSpace, class T>
const Inst* Store(Context& c, const Inst* in) {
  std::memcpy(Address<kSpace, Access::kWrite>(c, in, in->a, in->b, sizeof(T), 1), &c.S<T>(in->d), sizeof(T));
  return in + 1;
}
// e: elements of a short vector
template <Space kSpace, class T>
const Inst* LoadShort(Context& c, const Inst* in) {
  std::memcpy(c.s + in->d, Address<kSpace, Access::kRead>(c, in, in->a, in->b, sizeof(T), in->e), sizeof(T) * in->e);
  return in + 1;
}
template <Space kSpace, class T>
const Inst* StoreShort(Context& c, const Inst* in) {
  std::memcpy(Address<kSpace, Access::kWrite>(c, in, in->a, in->b, sizeof(T), in->e), c.s + in->d, sizeof(T) * in->e);
  return in + 1;
}

template <Space kSpace>
Handler Choose(int bytes, bool load, bool vector) {
  return ForWidth(bytes, [&](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    if (vector) return load ? &LoadShort<kSpace, T> : &StoreShort<kSpace, T>;
    return load ? &Load<kSpace, T> : &Store<kSpace, T>;
  });
}

void CompileAccess(Builder& b, const Op& op, bool load) {
  b.ExpectCounts(op, load ? 2 : 3, load ? 1 : 0);
  const uint32_t value = load ? op.results[0] : op.operands[0];
  const uint32_t pointer = op.operands[load ? 0 : 1], offset = op.operands[load ? 1 : 2];
  b.ExpectPointer(pointer);
  const ValueType &p = b.Type(pointer), &v = b.Type(value);
  const bool vector = v.kind == Kind::kShortVector;
  b.Expect(v.kind == Kind::kScalar || vector, "only scalars and short vectors can be loaded and stored");
  b.Expect(ByteSize(v.dtype) == ByteSize(p.dtype),
           std::string("a ") + Name(v.dtype) + " through a pointer to " + Name(p.dtype));
  b.Expect(b.unit() != kOnVector || p.space != Space::kGm, "a vecscope cannot access GM");
  b.Expect(p.space != Space::kUb || b.scope().core == CoreKind::kVector, "a cube core has no UB of its own");
  const uint32_t a = b.Scalar(pointer), o = b.Int64(offset);
  const uint32_t d = load ? b.Define(value).slot : b.Scalar(value);
  const int bytes = ByteSize(p.dtype);
  if (b.unit() == kOnSimt) b.code().narrowest = std::min(b.code().narrowest, bytes);
  Handler h = nullptr;
  switch (p.space) {
    case Space::kGm:
      h = Choose<Space::kGm>(bytes, load, vector);
      break;
    case Space::kUb:
      h = Choose<Space::kUb>(bytes, load, vector);
      break;
    case Space::kStack:
      h = Choose<Space::kStack>(bytes, load, vector);
      break;
    default:
      b.Fail(std::string("no scalar access to space ") + Name(p.space));
  }
  Inst& in = b.Emit(h);
  in.d = d, in.a = a, in.b = o, in.e = v.lanes;
}

void CompileLoad(Builder& b, const Op& op) { CompileAccess(b, op, true); }
void CompileStore(Builder& b, const Op& op) { CompileAccess(b, op, false); }

void CompileAllocBuffer(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  b.ExpectPointer(op.results[0]);
  b.Expect(b.Type(op.results[0]).space == Space::kStack, "the result of alloc_buffer is not a stack pointer");
  const uint32_t number = b.AddBuffer(b.IntegerAttribute(op, "count", 0), ByteSize(b.Type(op.results[0]).dtype));
  b.DefineConstant(op.results[0], MakePointer(number, 0));
}

}  // namespace

const OpTable& ScalarMemoryOps() {
  static const OpTable table = {
      {"load", kScalarAnywhere, &CompileLoad},
      {"store", kOnScalar | kOnVector, &CompileStore},
      {"alloc_buffer", kScalarAnywhere, &CompileAllocBuffer},
  };
  return table;
}

}  // namespace pto::engine
