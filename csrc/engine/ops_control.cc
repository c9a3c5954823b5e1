// const, for, if, vecscope, simt: structure becomes jumps, a vector function becomes code of its own.
#include "builder.h"
#include "core.h"
#include "float16.h"
#include "simt.h"

namespace pto::engine {
namespace {

uint64_t ConstantBits(Builder& b, const Op& op, DType t) {
  const int bytes = ByteSize(t);
  const uint64_t mask = bytes == 8 ? ~UINT64_C(0) : (UINT64_C(1) << (8 * bytes)) - 1;
  if (const Attribute* bits = op.Find("bits")) {
    b.Expect(bits->tag == Attribute::kInteger, "bits is not an integer");
    return static_cast<uint64_t>(bits->integer) & mask;
  }
  const Attribute* value = op.Find("value");
  b.Expect(value && value->tag != Attribute::kString, "a const needs value or bits");
  if (IsFloat(t)) {
    // The value is a double: round once, directly to the target type.
    const double x = value->number;
    if (t == DType::kF32) return BitCast<uint32_t>(static_cast<float>(x));
    return RoundToHalf(x, t == DType::kF16);
  }
  b.Expect(value->tag == Attribute::kInteger, "the value of an integer const is not an integer");
  if (t == DType::kI1) return value->integer != 0;
  return static_cast<uint64_t>(value->integer) & mask;
}

void CompileConst(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  b.ExpectScalar(op.results[0]);
  b.DefineConstant(op.results[0], ConstantBits(b, op, b.Type(op.results[0]).dtype));
}

// d: iv, a: lo, b: hi, c: step; jump: past the loop
const Inst* ForBegin(Context& c, const Inst* in) {
  const int64_t lo = c.S<int64_t>(in->a), step = c.S<int64_t>(in->c);
  if (step <= 0) c.Fail(in, "the step of a for loop is " + std::to_string(step) + ", it must be positive");
  c.S<int64_t>(in->d) = lo;
  return lo < c.S<int64_t>(in->b) ? in + 1 : in + in->jump;
}

// d: iv, b: hi, c: step; jump: back to the body; imm: instructions of the body
const Inst* ForNext(Context& c, const Inst* in) {
  if (__builtin_expect((c.budget -= in->imm) < 0, 0)) c.FailSteps(in);
  int64_t iv;
  const bool over = __builtin_add_overflow(c.S<int64_t>(in->d), c.S<int64_t>(in->c), &iv);
  c.S<int64_t>(in->d) = iv;
  return !over && iv < c.S<int64_t>(in->b) ? in + in->jump : in + 1;
}

const Inst* Branch(Context& c, const Inst* in) { return c.S<uint8_t>(in->a) ? in + 1 : in + in->jump; }
const Inst* Jump(Context&, const Inst* in) { return in + in->jump; }

std::vector<Place> Places(Builder& b, const std::vector<uint32_t>& values) {
  std::vector<Place> places;
  for (uint32_t v : values) places.push_back(b.Find(v));
  return places;
}

// Where the values go that are to be moved to `targets`: a uniform value for a lane target is spread first.
std::vector<Place> Sources(Builder& b, const std::vector<uint32_t>& values, const std::vector<Place>& targets) {
  std::vector<Place> places;
  for (size_t i = 0; i < values.size(); ++i) {
    if (targets[i].bank == Bank::kLane) {
      Place p = targets[i];
      p.slot = b.Lanes(values[i]);
      places.push_back(p);
    } else {
      places.push_back(b.Find(values[i]));
    }
  }
  return places;
}

void ExpectTypes(Builder& b, const std::vector<uint32_t>& values, const std::vector<uint32_t>& as, const char* what) {
  b.Expect(values.size() == as.size(),
           std::string(what) + ": " + std::to_string(values.size()) + " values for " + std::to_string(as.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    b.Expect(b.Type(values[i]) == b.Type(as[i]),
             std::string(what) + ": value " + std::to_string(i) + " has another type");
  }
}

void CompileFor(Builder& b, const Op& op) {
  b.Expect(op.operands.size() >= 3 && op.regions.size() == 1, "a for needs three bounds and one region");
  const Region& body = op.regions[0];
  const std::vector<uint32_t> inits(op.operands.begin() + 3, op.operands.end());
  b.Expect(!body.arguments.empty(), "the region of a for needs its induction variable");
  const uint32_t iv = body.arguments[0];
  const std::vector<uint32_t> carries(body.arguments.begin() + 1, body.arguments.end());
  b.ExpectInteger(iv);
  b.Expect(ByteSize(b.Type(iv).dtype) == 8, "the induction variable must be 64 bits wide");
  ExpectTypes(b, inits, carries, "initial values");
  ExpectTypes(b, op.results, carries, "results");
  const bool lanes = b.unit() == kOnSimt && b.IsVarying(iv);

  uint32_t lo, hi, step;
  if (lanes) {
    lo = b.Lanes64(op.operands[0]), hi = b.Lanes64(op.operands[1]), step = b.Lanes64(op.operands[2]);
  } else {
    lo = b.Int64(op.operands[0]), hi = b.Int64(op.operands[1]), step = b.Int64(op.operands[2]);
  }
  // A result is the carry after the last round: both share one place, which belongs to the outer scope.
  for (uint32_t r : op.results) b.Define(r);
  const std::vector<Place> places = Places(b, op.results);
  b.Move(places, Sources(b, inits, places), false);

  b.BeginScope();
  const Place iv_place = b.Define(iv);
  for (size_t i = 0; i < carries.size(); ++i) b.DefineAs(carries[i], places[i]);
  uint32_t mask = 0, saved = 0;
  const uint32_t begin = b.Here();
  if (lanes) {
    mask = b.LaneTemp(1), saved = b.ScalarTemp(sizeof(MaskState));
    Inst& in = b.Emit(&LaneFor);
    in.a = lo, in.b = saved, in.c = hi, in.d = mask, in.e = iv_place.slot, in.imm = step;
  } else {
    Inst& in = b.Emit(&ForBegin);
    in.d = iv_place.slot, in.a = lo, in.b = hi, in.c = step;
  }
  const uint32_t start = b.Here();
  const std::vector<uint32_t>& yielded = b.CompileRegion(body);
  ExpectTypes(b, yielded, carries, "yield");
  b.Move(places, Sources(b, yielded, places), lanes);
  const uint32_t next = b.Here();
  if (lanes) {
    Inst& in = b.Emit(&LaneNext);
    in.b = saved, in.c = hi, in.d = mask, in.e = iv_place.slot, in.imm = step;
    in.jump = static_cast<int32_t>(start) - static_cast<int32_t>(next);
    b.LandHere(begin);
    b.Emit(&LaneEnd).b = saved;
  } else {
    Inst& in = b.Emit(&ForNext);
    in.d = iv_place.slot, in.b = hi, in.c = step, in.imm = next - start + 1;
    in.jump = static_cast<int32_t>(start) - static_cast<int32_t>(next);
    b.LandHere(begin);
  }
  b.EndScope();
}

// imm: instructions of the loop; jump: back to the test
const Inst* WhileNext(Context& c, const Inst* in) {
  if (__builtin_expect((c.budget -= in->imm) < 0, 0)) c.FailSteps(in);
  return in + in->jump;
}

// Region 0 computes the condition of the carries, region 1 the next carries.
void CompileWhile(Builder& b, const Op& op) {
  b.Expect(op.regions.size() == 2 && !op.operands.empty(), "a while needs carries and two regions");
  const Region &test = op.regions[0], &body = op.regions[1];
  ExpectTypes(b, op.operands, test.arguments, "initial values");
  ExpectTypes(b, op.operands, body.arguments, "initial values");
  ExpectTypes(b, op.results, test.arguments, "results");
  b.Expect(!test.ops.empty() && test.ops.back().operands.size() == 1,
           "the first region of a while yields its condition");
  const uint32_t condition = test.ops.back().operands[0];
  b.Expect(b.Type(condition).kind == Kind::kScalar && b.Type(condition).dtype == DType::kI1,
           "the condition of a while is not an i1");
  const bool lanes = b.unit() == kOnSimt && b.IsVarying(condition);

  for (uint32_t r : op.results) b.Define(r);
  const std::vector<Place> places = Places(b, op.results);
  b.Move(places, Sources(b, op.operands, places), false);
  uint32_t mask = 0, saved = 0;
  if (lanes) {
    mask = b.LaneTemp(1), saved = b.ScalarTemp(sizeof(MaskState));
    b.Emit(&LaneSave).b = saved;
  }
  b.BeginScope();
  for (size_t i = 0; i < places.size(); ++i) b.DefineAs(test.arguments[i], places[i]);
  const uint32_t start = b.Here();
  b.CompileRegion(test);
  const uint32_t slot = lanes ? b.Lanes(condition) : b.Scalar(condition);
  const uint32_t branch = b.Here();
  Inst& in = b.Emit(lanes ? &LaneWhile : &Branch);
  in.a = slot, in.d = mask;
  b.EndScope();

  b.BeginScope();
  for (size_t i = 0; i < places.size(); ++i) b.DefineAs(body.arguments[i], places[i]);
  const std::vector<uint32_t>& yielded = b.CompileRegion(body);
  ExpectTypes(b, yielded, body.arguments, "yield");
  b.Move(places, Sources(b, yielded, places), lanes);
  const uint32_t next = b.Here();
  Inst& back = b.Emit(&WhileNext);
  back.imm = next - start + 1;
  back.jump = static_cast<int32_t>(start) - static_cast<int32_t>(next);
  b.LandHere(branch);
  if (lanes) b.Emit(&LaneEnd).b = saved;
  b.EndScope();
}

void CompileIf(Builder& b, const Op& op) {
  b.Expect(op.operands.size() == 1 && op.regions.size() == 2, "an if needs one condition and two regions");
  const uint32_t condition = op.operands[0];
  b.Expect(b.Type(condition).kind == Kind::kScalar && b.Type(condition).dtype == DType::kI1,
           "the condition of an if is not an i1");
  const bool lanes = b.unit() == kOnSimt && b.IsVarying(condition);
  // No value may be both merged and read inside, so the results' places can be written by either branch.
  for (uint32_t r : op.results) b.Define(r);
  const std::vector<Place> places = Places(b, op.results);
  uint32_t mask = 0, saved = 0;
  const uint32_t slot = lanes ? b.Lanes(condition) : b.Scalar(condition);
  if (lanes) mask = b.LaneTemp(1), saved = b.ScalarTemp(sizeof(MaskState));
  const uint32_t branch = b.Here();
  Inst& in = b.Emit(lanes ? &LaneIf : &Branch);
  in.a = slot, in.b = saved, in.d = mask;

  b.BeginScope();
  const std::vector<uint32_t>& first = b.CompileRegion(op.regions[0]);
  ExpectTypes(b, first, op.results, "then yield");
  b.Move(places, Sources(b, first, places), lanes);
  b.EndScope();

  b.BeginScope();
  const uint32_t middle = b.Here();
  if (lanes) {
    b.LandHere(branch);
    Inst& other = b.Emit(&LaneElse);
    other.a = slot, other.b = saved, other.d = mask;
  } else {
    b.Emit(&Jump, kCountNothing);
    b.LandHere(branch);
  }
  const std::vector<uint32_t>& second = b.CompileRegion(op.regions[1]);
  ExpectTypes(b, second, op.results, "else yield");
  b.Move(places, Sources(b, second, places), lanes);
  b.LandHere(middle);
  if (lanes) b.Emit(&LaneEnd).b = saved;
  b.EndScope();
}

void CompileVectorFunction(Builder& b, const Op& op, uint8_t unit) {
  b.ExpectCounts(op, 0, 0);
  b.Expect(op.regions.size() == 1 && op.regions[0].arguments.empty(),
           "a vector function needs one region without arguments");
  auto code = std::make_unique<Code>();
  if (unit == kOnSimt) {
    const char* const keys[] = {"x", "y", "z"};
    int64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
      const int64_t n = b.IntegerAttribute(op, keys[i], 1);
      b.Expect(n >= 1 && n <= 2048, std::string("dimension ") + keys[i] + " is " + std::to_string(n));
      code->dims[i] = static_cast<int>(n);
      threads *= n;
    }
    b.Expect(threads <= 2048, std::to_string(threads) + " threads, at most 2048 are possible");
    code->threads = static_cast<int>(threads);
  }
  Builder inner(b.scope(), &b, unit, *code);
  inner.CompileBody(op.regions[0]);
  inner.Finish();
  const uint32_t index = static_cast<uint32_t>(b.code().children.size());
  b.code().children.push_back(std::move(code));
  b.Emit(&IssueVectorFunction).a = index;
}

// A part of the kernel for one kind of core.
void CompileSection(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 0);
  b.Expect(op.regions.size() == 1 && op.regions[0].arguments.empty(), "a section needs one region without arguments");
  const std::string kind = b.TextAttribute(op, "kind", "");
  b.Expect(kind == "cube" || kind == "vector", "unknown kind " + kind);
  b.Expect(b.scope().tree->kernel_kind.empty(), "a kernel with a kind has no sections");
  const std::vector<Op>& body = b.scope().tree->body.ops;
  b.Expect(&op >= body.data() && &op < body.data() + body.size(), "a section stands directly in the body of a kernel");
  if ((kind == "cube") != (b.scope().core == CoreKind::kCube)) return;
  b.BeginScope();
  b.CompileRegion(op.regions[0]);
  b.EndScope();
}

void CompileVecscope(Builder& b, const Op& op) { CompileVectorFunction(b, op, kOnVector); }
void CompileSimt(Builder& b, const Op& op) { CompileVectorFunction(b, op, kOnSimt); }

// `yield` is handled by the region that ends with it.
void CompileYield(Builder& b, const Op&) { b.Fail("yield outside a region"); }

}  // namespace

const OpTable& ControlOps() {
  static const OpTable table = {
      {"const", kScalarAnywhere, &CompileConst},
      {"for", kOnScalar | kOnVector | kOnSimt, &CompileFor},
      {"while", kOnScalar | kOnVector | kOnSimt, &CompileWhile},
      {"if", kOnScalar | kOnVector | kOnSimt, &CompileIf},
      {"yield", kOnScalar | kOnVector | kOnSimt, &CompileYield},
      {"section", kOnScalar, &CompileSection},
      {"vecscope", kOnScalar | kVectorCore, &CompileVecscope},
      {"simt", kOnScalar | kVectorCore, &CompileSimt},
  };
  return table;
}

}  // namespace pto::engine
