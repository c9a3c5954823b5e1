// Divergence: which threads of a simt region are active.
#include "simt.h"

namespace pto::engine {
namespace {

// Makes `active` the mask from a byte array that is valid in [lo, hi) of the present mask; false when it is empty.
bool Narrow(Context& c, const uint8_t* active, int lo, int hi) {
  int count = 0;
  for (int i = lo; i < hi; ++i) count += active[i];
  c.mask.count = count;
  if (count == 0) return false;
  while (!active[lo]) ++lo;
  while (!active[hi - 1]) --hi;
  c.mask.lo = lo, c.mask.hi = hi;
  c.mask.active = active;
  c.mask.all = count == hi - lo;  // inside [lo, hi) nothing is left out
  return true;
}

// m[i] = active(i) && condition(i) over the range of `base`.
template <class F>
void Combine(const MaskState& base, uint8_t* m, F condition) {
  if (base.all) {
    for (int i = base.lo; i < base.hi; ++i) m[i] = condition(i);
  } else {
    for (int i = base.lo; i < base.hi; ++i) m[i] = base.active[i] & static_cast<uint8_t>(condition(i));
  }
}

}  // namespace

const Inst* LaneIf(Context& c, const Inst* in) {
  MaskState& saved = c.S<MaskState>(in->b);
  saved = c.mask;
  const uint8_t* condition = c.V<uint8_t>(in->a);
  uint8_t* m = c.V<uint8_t>(in->d);
  Combine(saved, m, [&](int i) { return condition[i] != 0; });
  return Narrow(c, m, saved.lo, saved.hi) ? in + 1 : in + in->jump;
}

const Inst* LaneElse(Context& c, const Inst* in) {
  const MaskState& saved = c.S<MaskState>(in->b);
  const uint8_t* condition = c.V<uint8_t>(in->a);
  uint8_t* m = c.V<uint8_t>(in->d);
  Combine(saved, m, [&](int i) { return condition[i] == 0; });
  return Narrow(c, m, saved.lo, saved.hi) ? in + 1 : in + in->jump;
}

const Inst* LaneEnd(Context& c, const Inst* in) {
  c.mask = c.S<MaskState>(in->b);
  return in + 1;
}

const Inst* LaneSave(Context& c, const Inst* in) {
  c.S<MaskState>(in->b) = c.mask;
  return in + 1;
}

// Threads whose condition fails leave the loop for good.
const Inst* LaneWhile(Context& c, const Inst* in) {
  const MaskState now = c.mask;
  const uint8_t* condition = c.V<uint8_t>(in->a);
  uint8_t* m = c.V<uint8_t>(in->d);
  Combine(now, m, [&](int i) { return condition[i] != 0; });
  return Narrow(c, m, now.lo, now.hi) ? in + 1 : in + in->jump;
}

const Inst* LaneFor(Context& c, const Inst* in) {
  MaskState& saved = c.S<MaskState>(in->b);
  saved = c.mask;
  const int64_t *lo = c.V<int64_t>(in->a), *hi = c.V<int64_t>(in->c);
  const int64_t* step = c.V<int64_t>(static_cast<uint32_t>(in->imm));
  int64_t* iv = c.V<int64_t>(in->e);
  uint8_t* m = c.V<uint8_t>(in->d);
  for (int i = saved.lo; i < saved.hi; ++i) {
    iv[i] = lo[i];
    if (step[i] <= 0 && (saved.all || saved.active[i])) {
      c.Fail(in, "the step of a for loop is " + std::to_string(step[i]) + " in thread " + std::to_string(i));
    }
  }
  Combine(saved, m, [&](int i) { return lo[i] < hi[i]; });
  return Narrow(c, m, saved.lo, saved.hi) ? in + 1 : in + in->jump;
}

const Inst* LaneNext(Context& c, const Inst* in) {
  if (__builtin_expect((c.budget -= -in->jump) < 0, 0)) c.FailSteps(in);
  const int64_t* hi = c.V<int64_t>(in->c);
  const int64_t* step = c.V<int64_t>(static_cast<uint32_t>(in->imm));
  int64_t* iv = c.V<int64_t>(in->e);
  uint8_t* m = c.V<uint8_t>(in->d);
  const MaskState now = c.mask;
  for (int i = now.lo; i < now.hi; ++i) {
    int64_t next;
    const bool over = __builtin_add_overflow(iv[i], step[i], &next);
    iv[i] = next;
    m[i] = m[i] & static_cast<uint8_t>(!over && next < hi[i]);
  }
  return Narrow(c, m, now.lo, now.hi) ? in + in->jump : in + 1;
}

}  // namespace pto::engine
