// The builder: values, slots, moves and regions. Program::Parse.
#include <algorithm>
#include <cstring>

#include "builder.h"
#include "simt.h"

namespace pto::engine {
namespace {

int64_t Extend(uint64_t bits, DType t) {
  const int shift = 64 - 8 * ByteSize(t);
  return IsUnsigned(t) ? static_cast<int64_t>(bits << shift >> shift) : static_cast<int64_t>(bits << shift) >> shift;
}

const Inst* MoveScalar(Context& c, const Inst* in) {
  c.S<uint64_t>(in->d) = c.S<uint64_t>(in->a);
  return in + 1;
}
const Inst* MoveScalarBytes(Context& c, const Inst* in) {
  std::memcpy(c.s + in->d, c.s + in->a, in->e);
  return in + 1;
}
const Inst* MoveVector(Context& c, const Inst* in) {
  std::memcpy(c.v + in->d, c.v + in->a, 256);
  return in + 1;
}
const Inst* MoveMask(Context& c, const Inst* in) {
  std::memcpy(c.m + in->d, c.m + in->a, 32);
  return in + 1;
}

template <class T>
const Inst* Widen(Context& c, const Inst* in) {
  c.S<int64_t>(in->d) = static_cast<int64_t>(c.S<T>(in->a));
  return in + 1;
}

Handler WidenFor(DType t) {
  switch (t) {
    case DType::kI1:
    case DType::kU8:
      return &Widen<uint8_t>;
    case DType::kI8:
      return &Widen<int8_t>;
    case DType::kI16:
      return &Widen<int16_t>;
    case DType::kU16:
      return &Widen<uint16_t>;
    case DType::kI32:
      return &Widen<int32_t>;
    case DType::kU32:
      return &Widen<uint32_t>;
    default:
      return nullptr;
  }
}

}  // namespace

Builder::Builder(FunctionScope& scope, Builder* parent, uint8_t unit, Code& code)
    : scope_(scope), parent_(parent), unit_(unit), code_(code) {
  code_.function = scope.function;
  code_.file = scope.file;
  code_.simt = unit == kOnSimt;
  scopes_.emplace_back();
}

void Builder::Fail(const std::string& message) const {
  ErrorPlace place;
  place.function = scope_.tree->name;
  place.file = *scope_.file;
  if (op_) {
    place.op = op_->name;
    place.line = op_->line;
  } else {
    place.line = scope_.tree->line;
  }
  throw Error(message, place);
}

// --- checks ---

void Builder::ExpectCounts(const Op& op, size_t operands, size_t results) const {
  if (op.operands.size() != operands || op.results.size() != results) {
    Fail("expected " + std::to_string(operands) + " operands and " + std::to_string(results) + " results, found " +
         std::to_string(op.operands.size()) + " and " + std::to_string(op.results.size()));
  }
}
void Builder::ExpectScalar(uint32_t value) const {
  Expect(Type(value).kind == Kind::kScalar, std::string("expected a scalar, found a ") + Name(Type(value).kind));
}
void Builder::ExpectInteger(uint32_t value) const {
  Expect(Type(value).kind == Kind::kScalar && IsInteger(Type(value).dtype), "expected an integer scalar");
}
void Builder::ExpectPointer(uint32_t value) const {
  Expect(Type(value).kind == Kind::kPointer, std::string("expected a pointer, found a ") + Name(Type(value).kind));
}
void Builder::ExpectVector(uint32_t value) const {
  Expect(Type(value).kind == Kind::kVector,
         std::string("expected a vector register, found a ") + Name(Type(value).kind));
}
void Builder::ExpectMask(uint32_t value, int element_bytes) const {
  const ValueType& t = Type(value);
  Expect(t.kind == Kind::kMask, std::string("expected a mask, found a ") + Name(t.kind));
  // Elements of 64 bits take masks of 32-bit lanes, of which every second one counts.
  if (element_bytes && t.lanes * static_cast<uint32_t>(std::min(element_bytes, 4)) != 256) {
    Fail("a mask of " + std::to_string(t.lanes) + " lanes does not fit elements of " + std::to_string(element_bytes) +
         " bytes");
  }
}
void Builder::ExpectSame(uint32_t a, uint32_t b) const {
  const ValueType &x = Type(a), &y = Type(b);
  if (x != y) {
    Fail(std::string("operand types differ: ") + Name(x.kind) + " of " + Name(x.dtype) + " and " + Name(y.kind) +
         " of " + Name(y.dtype));
  }
}

int64_t Builder::IntegerAttribute(const Op& op, const char* key, int64_t fallback) const {
  const Attribute* a = op.Find(key);
  if (!a) return fallback;
  Expect(a->tag == Attribute::kInteger, std::string("attribute ") + key + " is not an integer");
  return a->integer;
}

std::string Builder::TextAttribute(const Op& op, const char* key, const std::string& fallback) const {
  const Attribute* a = op.Find(key);
  if (!a) return fallback;
  Expect(a->tag == Attribute::kString, std::string("attribute ") + key + " is not a string");
  return a->text;
}

// --- slots ---

uint32_t Builder::ScalarTemp(uint32_t bytes) {
  const uint32_t slot = static_cast<uint32_t>(code_.image.size() * 8);
  code_.image.resize(code_.image.size() + (bytes + 7) / 8, 0);
  return slot;
}

uint32_t Builder::ScalarConstant(uint64_t bits) {
  auto [it, fresh] = constants_.try_emplace(bits, 0);
  if (fresh) {
    it->second = ScalarTemp();
    code_.image[it->second / 8] = bits;
  }
  return it->second;
}

uint32_t Builder::LaneTemp(uint32_t bytes_per_thread) {
  const uint32_t slot = static_cast<uint32_t>(code_.vector_bytes);
  code_.vector_bytes += (static_cast<size_t>(bytes_per_thread) * code_.threads + 63) / 64 * 64;
  Expect(code_.vector_bytes < (size_t{1} << 31), "a simt region needs too much memory");
  return slot;
}

uint32_t Builder::MaskTemp() {
  const uint32_t slot = static_cast<uint32_t>(code_.mask_bytes);
  code_.mask_bytes += 32;
  return slot;
}

Place Builder::Allocate(const ValueType& type, bool varying) {
  Place p;
  uint32_t elements = type.kind == Kind::kShortVector ? type.lanes : 1;
  uint32_t element = type.kind == Kind::kPointer ? 8 : static_cast<uint32_t>(ByteSize(type.dtype));
  switch (type.kind) {
    case Kind::kScalar:
    case Kind::kPointer:
    case Kind::kShortVector:
      if (varying) {
        p.bank = Bank::kLane;
        p.element = element;
        p.bytes = element * elements;
        p.slot = LaneTemp(p.bytes);
      } else {
        p.bytes = std::max<uint32_t>(8, (element * elements + 7) / 8 * 8);
        p.slot = ScalarTemp(p.bytes);
      }
      break;
    case Kind::kVector:
    case Kind::kAlignState:
      Expect(unit_ == kOnVector, "a vector register exists only in a vecscope");
      p.bank = Bank::kVector;
      p.slot = static_cast<uint32_t>(code_.vector_bytes);
      p.bytes = 256;
      code_.vector_bytes += 256;
      Expect(code_.vector_bytes < (size_t{1} << 31), "a vecscope holds too many vector registers");
      break;
    case Kind::kMask:
      Expect(unit_ == kOnVector, "a mask exists only in a vecscope");
      p.bank = Bank::kMask;
      p.slot = MaskTemp();
      p.bytes = 32;
      break;
  }
  return p;
}

void Builder::DefineAs(uint32_t value, const Place& place) {
  if (scope_.defined[value]) Fail("value " + std::to_string(value) + " is defined twice");
  scope_.defined[value] = true;
  places_[value] = place;
  scopes_.back().push_back(value);
}

Place Builder::Define(uint32_t value) {
  Place p = Allocate(Type(value), unit_ == kOnSimt && IsVarying(value));
  DefineAs(value, p);
  return p;
}

void Builder::DefineConstant(uint32_t value, uint64_t bits) {
  Place p;
  p.constant = true;
  p.bits = bits;
  p.slot = ScalarConstant(bits);
  DefineAs(value, p);
}

void Builder::EndScope() {
  for (uint32_t v : scopes_.back()) {
    places_.erase(v);
    spread_.erase(v);
  }
  scopes_.pop_back();
}

Place Builder::Find(uint32_t value) {
  auto it = places_.find(value);
  if (it != places_.end()) return it->second;
  if (!parent_) Fail("value " + std::to_string(value) + " is used before it is defined, or outside its region");
  const Op* mine = parent_->op_;
  parent_->op_ = op_;
  Place outer = parent_->Find(value);
  parent_->op_ = mine;
  Expect(outer.bank == Bank::kScalar && outer.bytes == 8, "only scalars and pointers can enter a vector function");
  Place p = outer;
  if (outer.constant) {
    p.slot = ScalarConstant(outer.bits);
  } else {
    p.slot = ScalarTemp();
    code_.captures.push_back({outer.slot, p.slot});
  }
  places_[value] = p;  // not in a scope: captured once for the whole body
  return p;
}

uint32_t Builder::Scalar(uint32_t value) {
  Place p = Find(value);
  Expect(p.bank == Bank::kScalar, "expected a value that is the same for all threads");
  return p.slot;
}

uint32_t Builder::Int64(uint32_t value) {
  ExpectInteger(value);
  const DType t = Type(value).dtype;
  Place p = Find(value);
  Expect(p.bank == Bank::kScalar, "expected a value that is the same for all threads");
  if (ByteSize(t) == 8) return p.slot;
  if (p.constant) return ScalarConstant(static_cast<uint64_t>(Extend(p.bits, t)));
  const uint32_t slot = ScalarTemp();
  Inst& in = Emit(WidenFor(t), kCountNothing);
  in.d = slot;
  in.a = p.slot;
  return slot;
}

uint32_t Builder::Vector(uint32_t value) {
  ExpectVector(value);
  return Find(value).slot;
}

uint32_t Builder::Mask(uint32_t value) {
  ExpectMask(value, 0);
  return Find(value).slot;
}

bool Builder::IsVarying(uint32_t value) const { return value < varying_.size() && varying_[value]; }

uint32_t Builder::Lanes(uint32_t value) {
  Place p = Find(value);
  if (p.bank == Bank::kLane) return p.slot;
  return Spread(value, p).slot;
}

// A constant or captured value is spread once at the start of the region, any other at its use.
Place Builder::Spread(uint32_t value, const Place& place) {
  auto it = spread_.find(value);
  if (it != spread_.end()) return it->second;
  Expect(place.bytes == 8, "a short vector must be held per thread here");
  const ValueType& type = Type(value);
  Place p;
  p.bank = Bank::kLane;
  p.element = p.bytes = type.kind == Kind::kPointer ? 8 : static_cast<uint32_t>(ByteSize(type.dtype));
  p.slot = LaneTemp(p.bytes);
  Inst in;
  in.fn = SpreadHandler(static_cast<int>(p.element));
  in.counter = kCountNothing;
  in.d = p.slot;
  in.a = place.slot;
  bool outside = place.constant || std::none_of(scopes_.begin(), scopes_.end(), [&](const std::vector<uint32_t>& s) {
                   return std::find(s.begin(), s.end(), value) != s.end();
                 });
  if (outside) {
    prologue_.push_back(in);
    prologue_debug_.push_back({op_ ? &*scope_.names->insert(op_->name).first : nullptr, op_ ? op_->line : 0});
    spread_[value] = p;
  } else {
    Emit(in.fn, kCountNothing) = in;
  }
  return p;
}

uint32_t Builder::Lanes64(uint32_t value) {
  ExpectInteger(value);
  const DType t = Type(value).dtype;
  Place p = Find(value);
  if (p.bank == Bank::kLane) {
    if (p.element == 8) return p.slot;
    const uint32_t slot = LaneTemp(8);
    Inst& in = Emit(LaneWidenHandler(t), kCountNothing);
    in.d = slot;
    in.a = p.slot;
    return slot;
  }
  const uint32_t wide = Int64(value);
  const uint32_t slot = LaneTemp(8);
  Inst& in = Emit(SpreadHandler(8), kCountNothing);
  in.d = slot;
  in.a = wide;
  return slot;
}

Inst& Builder::Emit(Handler fn, uint8_t counter) {
  if (!fn) Fail("this combination of types is not supported");
  Inst in;
  in.fn = fn;
  in.counter = counter;
  code_.insts.push_back(in);
  code_.debug.push_back({op_ ? &*scope_.names->insert(op_->name).first : nullptr, op_ ? op_->line : 0});
  return code_.insts.back();
}

void Builder::Move(const std::vector<Place>& to, const std::vector<Place>& from, bool merge) {
  auto emit = [&](const Place& d, const Place& s, bool merged) {
    switch (d.bank) {
      case Bank::kScalar: {
        Inst& in = Emit(d.bytes == 8 ? &MoveScalar : &MoveScalarBytes, kCountNothing);
        in.d = d.slot, in.a = s.slot, in.e = d.bytes;
        break;
      }
      case Bank::kVector: {
        Inst& in = Emit(&MoveVector, kCountNothing);
        in.d = d.slot, in.a = s.slot;
        NoteFlow(Here() - 1, {d}, {s});
        break;
      }
      case Bank::kMask: {
        Inst& in = Emit(&MoveMask, kCountNothing);
        in.d = d.slot, in.a = s.slot;
        NoteFlow(Here() - 1, {d}, {s});
        break;
      }
      case Bank::kLane: {
        Inst& in = Emit(LaneMoveHandler(static_cast<int>(d.element), merged), kCountNothing);
        in.d = d.slot, in.a = s.slot, in.e = d.bytes / d.element;
        NoteFlow(Here() - 1, {d}, {s});
        break;
      }
    }
  };
  auto same = [](const Place& a, const Place& b) { return a.bank == b.bank && a.slot == b.slot; };
  bool hazard = false;
  for (size_t i = 0; i < to.size(); ++i) {
    for (size_t j = i + 1; j < to.size(); ++j) hazard |= same(to[i], from[j]);
  }
  std::vector<Place> source = from;
  if (hazard) {
    for (size_t i = 0; i < to.size(); ++i) {
      Place t = to[i];
      switch (t.bank) {
        case Bank::kScalar:
          t.slot = ScalarTemp(t.bytes);
          break;
        case Bank::kVector:
          t.slot = static_cast<uint32_t>(code_.vector_bytes);
          code_.vector_bytes += 256;
          break;
        case Bank::kMask:
          t.slot = MaskTemp();
          break;
        case Bank::kLane:
          t.slot = LaneTemp(t.bytes);
          break;
      }
      emit(t, from[i], false);
      source[i] = t;
    }
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (!same(to[i], source[i])) emit(to[i], source[i], merge);
  }
}

uint32_t Builder::AddBuffer(int64_t count, int element_bytes) {
  std::vector<StackBuffer>& all = scope_.function->buffers;
  Expect(count > 0 && count * element_bytes * code_.threads < (1 << 28), "the buffer is empty or too large");
  Expect(all.size() < 0xFFFE, "too many buffers");
  const uint32_t number = static_cast<uint32_t>(all.size());
  StackBuffer b;
  b.count = count;
  b.element_bytes = element_bytes;
  if (unit_ == kOnSimt) {
    b.threads = code_.threads;
    code_.lane_buffers.push_back({number, LaneTemp(static_cast<uint32_t>(count * element_bytes))});
  }
  all.push_back(b);
  return number;
}

// --- regions ---

const std::vector<uint32_t>& Builder::CompileRegion(const Region& region) {
  static const std::vector<uint32_t> kNothing;
  const Op* const outer = op_;
  for (size_t i = 0; i < region.ops.size(); ++i) {
    const Op& op = region.ops[i];
    op_ = &op;
    if (op.name == "yield") {
      Expect(i + 1 == region.ops.size(), "yield is not the last operation of its region");
      Expect(op.results.empty(), "yield has results");
      op_ = outer;
      return op.operands;
    }
    CompileOp(op);
  }
  op_ = outer;
  return kNothing;
}

void Builder::CompileOp(const Op& op) {
  const OpEntry* entry = nullptr;
  if (unit_ == kOnSimt) {
    bool uniform = true;
    for (uint32_t v : op.operands) uniform &= !IsVarying(v);
    for (uint32_t v : op.results) uniform &= !IsVarying(v);
    if (uniform) entry = FindOp(op.name, kUniform);
    if (!entry) entry = FindOp(op.name, kOnSimt);
  } else {
    entry = FindOp(op.name, unit_);
  }
  if (!entry) {
    if (!IsKnownOp(op.name)) Fail("unknown operation " + op.name);
    Fail(op.name + (unit_ == kOnScalar   ? " stands outside a vector function"
                    : unit_ == kOnVector ? " is not allowed inside a vecscope"
                                         : " is not allowed inside a simt region"));
  }
  const uint8_t other = scope_.core == CoreKind::kCube ? kVectorCore : kCubeCore;
  if (entry->units & other) {
    const std::string kind = other == kCubeCore ? "cube" : "vector";
    Fail(op.name + " runs on a " + kind + " core only" +
         (scope_.mixed ? ": put it into pto.section(\"" + kind + "\")" : ""));
  }
  const uint32_t first = Here();
  const std::vector<Place> read = Registers(op.operands);
  entry->compile(*this, op);
  // What a loop or a branch results in is written by moves at the ends of its regions, which note that themselves.
  const std::vector<Place> written = op.regions.empty() ? Registers(op.results) : std::vector<Place>();
  NoteFlow(first, written, read, VectorType(op.results), VectorType(op.operands));
  NoteViews(first, op);
}

// For the instructions emitted since `first`.
void Builder::NoteViews(uint32_t first, const Op& op) {
  if (scope_.views.empty()) return;
  std::vector<ViewUse> uses;
  if (op.regions.empty()) {
    uses = UsesOfViews(*scope_.tree, scope_.views, scope_.function->views, op);
  } else if (op.name == "vecscope" || op.name == "simt") {  // its call may fill what it stores to
    for (ViewUse use : code_.children.back()->view_uses) {
      use.reads = false;
      if (use.writes) uses.push_back(use);
    }
  }
  if (uses.empty()) return;
  ViewRange range;
  range.first = static_cast<uint32_t>(code_.view_uses.size()), range.count = static_cast<uint32_t>(uses.size());
  code_.view_uses.insert(code_.view_uses.end(), uses.begin(), uses.end());
  code_.views.resize(code_.insts.size());
  std::fill(code_.views.begin() + first, code_.views.end(), range);
}

DType Builder::VectorType(const std::vector<uint32_t>& values) const {
  for (uint32_t v : values) {
    if (Type(v).kind == Kind::kVector) return Type(v).dtype;
  }
  return DType::kNone;
}

std::vector<Place> Builder::Registers(const std::vector<uint32_t>& values) const {
  std::vector<Place> found;
  if (unit_ == kOnScalar) return found;
  for (uint32_t v : values) {
    auto it = places_.find(v);
    if (it != places_.end() && it->second.bank != Bank::kScalar) found.push_back(it->second);
  }
  return found;
}

// For the instructions emitted since `first` that are not those of an operation inside.
void Builder::NoteFlow(uint32_t first, const std::vector<Place>& written, const std::vector<Place>& read, DType result,
                       DType operand) {
  if (unit_ == kOnScalar) return;
  constexpr uint32_t kNotNoted = ~0u;
  Flow unknown;
  unknown.first = kNotNoted;
  code_.flow.resize(code_.insts.size(), unknown);
  Flow flow;
  flow.first = static_cast<uint32_t>(code_.registers.size());
  flow.written = static_cast<uint8_t>(written.size()), flow.read = static_cast<uint8_t>(read.size());
  flow.result = result, flow.operand = operand;
  for (const std::vector<Place>* places : {&written, &read}) {
    for (const Place& p : *places) {
      code_.registers.push_back(p.bank == Bank::kMask     ? MaskNumber(p.slot)
                                : p.bank == Bank::kVector ? VectorNumber(p.slot)
                                                          : p.slot);
    }
  }
  for (uint32_t i = first; i < code_.insts.size(); ++i) {
    if (code_.flow[i].first == kNotNoted) code_.flow[i] = flow;
  }
}

void Builder::CompileBody(const Region& region) {
  if (unit_ == kOnSimt) AnalyseUniformity(region);
  CompileRegion(region);
  op_ = nullptr;
}

void Builder::Finish() {
  code_.insts.insert(code_.insts.begin(), prologue_.begin(), prologue_.end());
  code_.debug.insert(code_.debug.begin(), prologue_debug_.begin(), prologue_debug_.end());
  if (unit_ != kOnScalar) code_.flow.insert(code_.flow.begin(), prologue_.size(), Flow());
  if (!code_.views.empty()) code_.views.insert(code_.views.begin(), prologue_.size(), ViewRange());
  Inst end;
  end.fn = +[](Context&, const Inst*) -> const Inst* { return nullptr; };
  end.counter = kCountNothing;
  code_.insts.push_back(end);
  code_.debug.push_back({nullptr, scope_.tree->line});
  if (unit_ != kOnScalar) code_.flow.resize(code_.insts.size());
  if (!code_.views.empty()) code_.views.resize(code_.insts.size());
}

// --- which values of a simt region are the same for all threads ---

bool Builder::MarkVarying(uint32_t value) {
  if (varying_[value]) return false;
  varying_[value] = true;
  return true;
}

bool Builder::Analyse(const Region& region) {
  bool changed = false;
  for (const Op& op : region.ops) {
    bool any = false;
    for (uint32_t v : op.operands) any |= varying_[v];
    auto yields = [](const Region& r) -> const Op* {
      return !r.ops.empty() && r.ops.back().name == "yield" ? &r.ops.back() : nullptr;
    };
    if (op.name == "for" && op.regions.size() == 1 && op.operands.size() >= 3) {
      const Region& body = op.regions[0];
      const bool divergent = varying_[op.operands[0]] || varying_[op.operands[1]] || varying_[op.operands[2]];
      const Op* yield = yields(body);
      if (divergent && !body.arguments.empty()) changed |= MarkVarying(body.arguments[0]);
      for (size_t i = 0; i < op.results.size(); ++i) {
        bool v = divergent || Type(op.results[i]).kind == Kind::kShortVector;
        if (i + 3 < op.operands.size()) v |= varying_[op.operands[i + 3]];
        if (yield && i < yield->operands.size()) v |= varying_[yield->operands[i]];
        if (!v) continue;
        changed |= MarkVarying(op.results[i]);
        if (i + 1 < body.arguments.size()) changed |= MarkVarying(body.arguments[i + 1]);
      }
    } else if (op.name == "while" && op.regions.size() == 2) {
      const Op *test = yields(op.regions[0]), *yield = yields(op.regions[1]);
      const bool divergent = test && !test->operands.empty() && varying_[test->operands[0]];
      for (size_t i = 0; i < op.results.size(); ++i) {
        bool v = divergent || Type(op.results[i]).kind == Kind::kShortVector;
        if (i < op.operands.size()) v |= varying_[op.operands[i]];
        if (yield && i < yield->operands.size()) v |= varying_[yield->operands[i]];
        if (!v) continue;
        changed |= MarkVarying(op.results[i]);
        for (const Region& r : op.regions) {
          if (i < r.arguments.size()) changed |= MarkVarying(r.arguments[i]);
        }
      }
    } else if (op.name == "if" && op.regions.size() == 2 && op.operands.size() == 1) {
      const Op *a = yields(op.regions[0]), *b = yields(op.regions[1]);
      for (size_t i = 0; i < op.results.size(); ++i) {
        bool v = any || Type(op.results[i]).kind == Kind::kShortVector;
        if (a && i < a->operands.size()) v |= varying_[a->operands[i]];
        if (b && i < b->operands.size()) v |= varying_[b->operands[i]];
        if (v) changed |= MarkVarying(op.results[i]);
      }
    } else if (!op.results.empty()) {
      bool v = any || !FindOp(op.name, kUniform);
      for (uint32_t r : op.results) v |= Type(r).kind == Kind::kShortVector;
      // Each thread has its own copy of a stack buffer.
      for (uint32_t o : op.operands)
        v |= op.name == "load" && Type(o).kind == Kind::kPointer && Type(o).space == Space::kStack;
      if (v) {
        for (uint32_t r : op.results) changed |= MarkVarying(r);
      }
    }
    for (const Region& r : op.regions) changed |= Analyse(r);
  }
  return changed;
}

void Builder::AnalyseUniformity(const Region& region) {
  varying_.assign(scope_.tree->types.size(), false);
  while (Analyse(region)) {
  }
}

// --- functions ---

namespace {

void MarkUsed(const Region& region, std::vector<bool>* used) {
  for (const Op& op : region.ops) {
    for (uint32_t v : op.operands) (*used)[v] = true;
    for (const Region& r : op.regions) MarkUsed(r, used);
  }
}

bool HasCubeOperation(const Region& region) {
  for (const Op& op : region.ops) {
    if (FindOp(op.name, kCubeCore)) return true;
    for (const Region& r : op.regions) {
      if (HasCubeOperation(r)) return true;
    }
  }
  return false;
}

bool HasSection(const FunctionTree& tree, const char* kind) {
  for (const Op& op : tree.body.ops) {
    const Attribute* a = op.name == "section" ? op.Find("kind") : nullptr;
    if (a && a->text == kind) return true;
  }
  return false;
}

// Without a kind the sections tell which cores a kernel runs on, and without sections its operations.
void FindCores(const FunctionTree& tree, bool* cube, bool* vector) {
  *cube = tree.kernel_kind == "cube" || (tree.kernel_kind.empty() && HasSection(tree, "cube"));
  *vector = tree.kernel_kind == "vector" || (tree.kernel_kind.empty() && HasSection(tree, "vector"));
  if (!*cube && !*vector) (HasCubeOperation(tree.body) ? *cube : *vector) = true;
}

std::unique_ptr<CompiledFunction> CompileFor(CoreKind core, bool mixed, const FunctionTree& tree,
                                             const std::string* file, std::unordered_set<std::string>* names) {
  auto f = std::make_unique<CompiledFunction>();
  f->name = tree.name;
  f->kernel_kind = tree.kernel_kind;
  f->line = tree.line;
  f->core = core;
  f->mixed = mixed;
  FunctionScope scope;
  scope.tree = &tree;
  scope.function = f.get();
  scope.core = core;
  scope.mixed = mixed;
  scope.file = file;
  scope.defined.assign(tree.types.size(), false);
  scope.names = names;
  scope.used.assign(tree.types.size(), false);
  MarkUsed(tree.body, &scope.used);
  scope.views = FindPointerViews(tree, &f->views);
  Builder b(scope, nullptr, kOnScalar, f->code);
  b.Expect(tree.kernel_kind.empty() || tree.kernel_kind == "vector" || tree.kernel_kind == "cube",
           "unknown kernel kind " + tree.kernel_kind);
  for (size_t i = 0; i < tree.parameter_values.size(); ++i) {
    const uint32_t value = tree.parameter_values[i];
    const ValueType& t = b.Type(value);
    b.Expect(t.kind == Kind::kScalar || t.kind == Kind::kPointer, "a parameter is neither a pointer nor a scalar");
    f->parameters.push_back({tree.parameter_names[i], t});
    f->parameter_slots.push_back(b.Define(value).slot);
  }
  b.CompileBody(tree.body);
  b.Finish();
  return f;
}

std::unique_ptr<CompiledFunction> CompileFunction(const FunctionTree& tree, const std::string* file,
                                                  std::unordered_set<std::string>* names) {
  bool cube = false, vector = false;
  FindCores(tree, &cube, &vector);
  const bool mixed = cube && vector;
  auto f = CompileFor(cube ? CoreKind::kCube : CoreKind::kVector, mixed, tree, file, names);
  if (mixed) f->vector_side = CompileFor(CoreKind::kVector, mixed, tree, file, names);
  return f;
}

}  // namespace

std::shared_ptr<const Program> Program::Parse(const void* data, size_t size) {
  ProgramTree tree = ReadProgram(data, size);
  std::shared_ptr<Program> program(new Program());
  program->source_file_ = tree.source_file;
  for (const FunctionTree& f : tree.functions) {
    if (program->Find(f.name)) {
      ErrorPlace place;
      place.function = f.name;
      place.file = tree.source_file;
      place.line = f.line;
      throw Error("two functions have the name " + f.name, place);
    }
    program->functions_.push_back(CompileFunction(f, &program->source_file_, &program->op_names_));
  }
  return program;
}

const Function* Program::Find(const std::string& name) const {
  for (const auto& f : functions_) {
    if (f->name == name) return f.get();
  }
  return nullptr;
}

}  // namespace pto::engine
