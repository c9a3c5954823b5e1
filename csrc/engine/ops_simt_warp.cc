// Warp collectives: 32 threads with consecutive linear indices exchange values. Only active threads take part.
#include <algorithm>

#include "arith.h"
#include "builder.h"
#include "core.h"
#include "dispatch.h"

namespace pto::engine {
namespace {

constexpr int kWarp = 32;

inline bool Active(const Context& c, int thread) {
  return thread >= c.mask.lo && thread < c.mask.hi && (c.mask.all || c.mask.active[thread]);
}

template <class F>
void ForActive(const Context& c, F f) {
  for (int i = c.mask.lo; i < c.mask.hi; ++i) {
    if (c.mask.all || c.mask.active[i]) f(i);
  }
}

// f(first thread, one past the last thread) for each warp that has active threads.
template <class F>
void ForWarps(const Context& c, F f) {
  for (int first = c.mask.lo / kWarp * kWarp; first < c.mask.hi; first += kWarp) {
    f(first, std::min(first + kWarp, c.threads));
  }
}

// --- shuffles: the lane a thread reads, or its own ---

struct ByIndex {
  static int Source(int lane, uint32_t index, int width) {
    return lane / width * width + static_cast<int>(index % static_cast<uint32_t>(width));
  }
};
struct Up {
  static int Source(int lane, uint32_t offset, int width) {
    return offset > static_cast<uint32_t>(lane % width) ? lane : lane - static_cast<int>(offset);
  }
};
struct Down {
  static int Source(int lane, uint32_t offset, int width) {
    return offset >= static_cast<uint32_t>(width - lane % width) ? lane : lane + static_cast<int>(offset);
  }
};
// A lower group can be read, a higher one gives the own value.
struct Butterfly {
  static int Source(int lane, uint32_t mask, int width) {
    const int source = lane ^ static_cast<int>(mask % kWarp);
    return source / width > lane / width ? lane : source;
  }
};

// d: result, a: value, b: index, offset or mask (i32 lane array), imm: width
template <class F, class T>
const Inst* Shuffle(Context& c, const Inst* in) {
  const T* a = c.V<T>(in->a);
  const uint32_t* b = c.V<uint32_t>(in->b);
  T* d = c.V<T>(in->d);
  ForActive(c, [&](int i) {
    const int source = i / kWarp * kWarp + F::Source(i % kWarp, b[i], static_cast<int>(in->imm));
    if (!Active(c, source)) {
      c.Fail(in, "thread " + std::to_string(i) + " reads the value of thread " + std::to_string(source) +
                     ", which does not take part");
    }
    d[i] = a[source];
  });
  return in + 1;
}

// --- reductions: every active thread of the warp gets the result ---

template <class F, class T>
const Inst* Reduce(Context& c, const Inst* in) {
  const T* a = c.V<T>(in->a);
  T* d = c.V<T>(in->d);
  ForWarps(c, [&](int first, int end) {
    // A tree over neighbours. Threads that do not take part leave gaps.
    T value[kWarp];
    bool present[kWarp] = {};
    for (int i = first; i < end; ++i) {
      present[i - first] = Active(c, i);
      if (present[i - first]) value[i - first] = a[i];
    }
    for (int n = kWarp / 2; n >= 1; n /= 2) {
      for (int i = 0; i < n; ++i) {
        const bool left = present[2 * i], right = present[2 * i + 1];
        if (left && right) {
          value[i] = Apply2<F>(value[2 * i], value[2 * i + 1]);
        } else if (left || right) {
          value[i] = value[left ? 2 * i : 2 * i + 1];
        }
        present[i] = left || right;
      }
    }
    for (int i = first; i < end; ++i) {
      if (Active(c, i)) d[i] = value[0];
    }
  });
  return in + 1;
}

enum VoteKind { kAll, kAny, kUniformVote, kBallot };

template <VoteKind kKind>
const Inst* Vote(Context& c, const Inst* in) {
  const uint8_t* a = c.V<uint8_t>(in->a);
  ForWarps(c, [&](int first, int end) {
    uint32_t active = 0, yes = 0;
    for (int i = first; i < end; ++i) {
      if (!Active(c, i)) continue;
      active |= 1u << (i - first);
      if (a[i]) yes |= 1u << (i - first);
    }
    for (int i = first; i < end; ++i) {
      if (!Active(c, i)) continue;
      if constexpr (kKind == kBallot) {
        c.V<uint32_t>(in->d)[i] = yes;
      } else {
        c.V<uint8_t>(in->d)[i] = kKind == kAll ? yes == active : kKind == kAny ? yes != 0 : yes == active || yes == 0;
      }
    }
  });
  return in + 1;
}

// --- compilation ---

template <class F>
void CompileShuffle(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  b.ExpectInteger(op.operands[1]);
  b.Expect(ByteSize(b.Type(op.operands[1]).dtype) == 4, "the second operand is an i32");
  const int64_t width = b.IntegerAttribute(op, "width", kWarp);
  b.Expect(width == 16 || width == 32, "width is 16 or 32, found " + std::to_string(width));
  const uint32_t x = b.Lanes(op.operands[0]), y = b.Lanes(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(ForWidth(ByteSize(b.Type(op.operands[0]).dtype),
                             [](auto tag) -> Handler { return &Shuffle<F, typename decltype(tag)::Type>; }));
  in.d = d.slot, in.a = x, in.b = y, in.imm = width;
}

template <class F>
void CompileReduce(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  DType t = b.Type(op.operands[0]).dtype;
  if (t == DType::kI32 && b.TextAttribute(op, "signedness", "signed") == "unsigned") t = DType::kU32;
  Handler h = nullptr;
  switch (t) {
    case DType::kI32:
      h = &Reduce<F, int32_t>;
      break;
    case DType::kU32:
      h = &Reduce<F, uint32_t>;
      break;
    case DType::kF16:
      h = &Reduce<F, F16>;
      break;
    case DType::kF32:
      h = &Reduce<F, float>;
      break;
    default:
      break;
  }
  const uint32_t x = b.Lanes(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h);
  in.d = d.slot, in.a = x;
}

template <VoteKind kKind>
void CompileVote(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  const ValueType &x = b.Type(op.operands[0]), &y = b.Type(op.results[0]);
  b.Expect(x.kind == Kind::kScalar && x.dtype == DType::kI1, "the operand is an i1");
  b.Expect(y.kind == Kind::kScalar && ByteSize(y.dtype) == (kKind == kBallot ? 4 : 1), "the result has another type");
  const uint32_t a = b.Lanes(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&Vote<kKind>);
  in.d = d.slot, in.a = a;
}

}  // namespace

const OpTable& SimtWarpOps() {
  static const OpTable table = {
      {"shuffle_idx", kOnSimt, &CompileShuffle<ByIndex>}, {"shuffle_up", kOnSimt, &CompileShuffle<Up>},
      {"shuffle_down", kOnSimt, &CompileShuffle<Down>},   {"shuffle_bfly", kOnSimt, &CompileShuffle<Butterfly>},
      {"redux_add", kOnSimt, &CompileReduce<Add>},        {"redux_max", kOnSimt, &CompileReduce<Max>},
      {"redux_min", kOnSimt, &CompileReduce<Min>},        {"vote_all", kOnSimt, &CompileVote<kAll>},
      {"vote_any", kOnSimt, &CompileVote<kAny>},          {"vote_uni", kOnSimt, &CompileVote<kUniformVote>},
      {"vote_ballot", kOnSimt, &CompileVote<kBallot>},
  };
  return table;
}

}  // namespace pto::engine
