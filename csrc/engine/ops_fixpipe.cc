// mte_l0c_gm, mte_l0c_ub, mte_l0c_l1: what is in L0C, converted and in another layout, to GM, UB or L1.
#include <algorithm>
#include <cstring>
#include <map>

#include "fixpipe_number.h"
#include "fixpipe_work.h"
#include "fractal.h"
#include "store_atomic.h"
#include "unit_flags.h"

namespace pto::engine {
namespace {

constexpr int64_t kStoreBlock = 32;  // alignment in UB and L1

enum class Layout : uint8_t { kRows, kColumns, kFractals };
enum class Split : uint8_t { kNone, kRows, kColumns };

struct Fixpipe {
  Space target = Space::kGm;
  DType source = DType::kF32, result = DType::kF32;
  Quant quant = Quant::kNone;
  bool quant_vector = false;
  DType quant_scalar = DType::kF32;
  ReluMode relu = ReluMode::kNone;
  DType relu_scalar = DType::kF32;
  DType clip_type = DType::kF16;
  StoreSat sat = StoreSat::kDefault;
  Layout layout = Layout::kRows;
  Split split = Split::kNone;
  uint8_t unit_flag = kUnitOff;
  bool own_atomic = false;  // atomic= of the call, in place of set_atomic_*
  StoreAtomic atomic;
  // Operand numbers, -1: none. src, dst, m, n, src_stride and dst_stride are 0 to 5.
  int sub_block = -1, quant_at = -1, relu_at = -1, clip_at = -1, layout_at = -1, loop3_at = -1;
  int values = 6;
};

// One command with the values of its operands.
class Store {
 public:
  Store(Core& core, const Command& c)
      : core_(core), u_(core, c, "FIX"), d_(DetailsOf<Fixpipe>(core, c)), v_(c.values), memory_(core.shared->cube) {}

  bool Run();

 private:
  void Read();
  void CheckShape() const;
  void ReadParameters();
  template <class F>
  bool ForUnits(F f);
  void StoreRow(int64_t matrix, int64_t m);
  void Convert(int64_t first, int64_t count);
  void Write(int64_t matrix, int64_t m, int64_t n, int64_t count);
  void WriteBytes(int64_t element, const uint8_t* from, int64_t elements, int64_t m, int64_t n);
  const QuantParameter& Parameter(int64_t n) const { return quant_[d_.quant_vector ? static_cast<size_t>(n) : 0]; }
  float Slope(int64_t n) const { return slope_[d_.relu == ReluMode::kVector ? static_cast<size_t>(n) : 0]; }

  Core& core_;
  CommandUnit u_;
  const Fixpipe& d_;
  const uint64_t* v_;
  CubeMemory& memory_;
  int64_t m_ = 0, n_ = 0, src_stride_ = 0, dst_stride_ = 0, sub_block_ = 0;
  int64_t row_step_ = 1;        // rows of L0C between two rows of the result
  bool half_fractals_ = false;  // 8 columns in a fractal of the result in place of 16
  int64_t matrices_ = 1, matrix_src_ = 0, matrix_dst_ = 0;
  StoreAtomic atomic_;
  float clip_ = 0;
  int element_ = 4;
  std::vector<QuantParameter> quant_;
  std::vector<float> slope_;
  std::vector<float> row_;  // f32, or the bits of s32
  std::vector<uint8_t> out_;
};

float ScalarValue(DType t, uint64_t bits) {
  if (t == DType::kF16) return ToFloat(F16{static_cast<uint16_t>(bits)});
  if (t == DType::kBF16) return ToFloat(BF16{static_cast<uint16_t>(bits)});
  if (t == DType::kF32) return BitCast<float>(static_cast<uint32_t>(bits));
  return static_cast<float>(static_cast<int64_t>(bits));
}

void Store::Read() {
  m_ = u_.Field("m", v_[2], 0, 65535), n_ = u_.Field("n", v_[3], 0, 4095);
  src_stride_ = u_.Field("src_stride", v_[4], 0, 65535);
  dst_stride_ = u_.Field("dst_stride", v_[5], 0, (INT64_C(1) << 32) - 1);
  if (d_.sub_block >= 0) sub_block_ = u_.Field("sub_blockid", v_[d_.sub_block], 0, 1);
  if (d_.layout_at >= 0) {
    const uint64_t value = v_[d_.layout_at];
    if (d_.layout == Layout::kColumns) row_step_ = u_.Field("the source stride of nz2dn", value, 0, 65535);
    if (d_.layout == Layout::kFractals) half_fractals_ = u_.Field("the split of nz2nz", value, 0, 1) != 0;
  }
  if (d_.loop3_at >= 0) {
    matrices_ = u_.Field("the loop3 count", v_[d_.loop3_at], 0, 65535);
    matrix_src_ = u_.Field("the loop3 source stride", v_[d_.loop3_at + 1], 0, 65535);
    matrix_dst_ = u_.Field("the loop3 destination stride", v_[d_.loop3_at + 2], 0, (INT64_C(1) << 32) - 1);
  }
  atomic_ = StoreAtomic::Unpack(v_[d_.values]);
  if (d_.own_atomic) atomic_ = d_.atomic;
  element_ = ByteSize(d_.result);
}

void Store::CheckShape() const {
  const bool integers = IsInteger(atomic_.type) && IsInteger(d_.result) && ByteSize(atomic_.type) == element_;
  if (d_.target == Space::kGm && atomic_.type != DType::kNone && atomic_.type != d_.result && !integers) {
    u_.Fail(std::string("stores to GM are set to combine ") + Name(atomic_.type) + ", this one has " + Name(d_.result));
  }
  const bool aligned = d_.target != Space::kGm;
  auto whole = [&](const char* what, int64_t bytes) {
    if (aligned && bytes % kStoreBlock) {
      u_.Fail(std::string(what) + " has " + std::to_string(bytes) + " bytes, not a multiple of 32");
    }
  };
  switch (d_.layout) {
    case Layout::kRows:
      if (m_ > 8192) u_.Fail("m is " + std::to_string(m_) + ", nz2nd takes at most 8192 rows");
      whole("a row", (d_.split == Split::kColumns ? n_ / 2 : n_) * element_);
      break;
    case Layout::kColumns:
      whole("a column", m_ * element_);
      if (row_step_ != 1 && d_.unit_flag != kUnitOff) u_.Fail("unit_flag with a nz2dn source stride other than 1");
      break;
    case Layout::kFractals: {
      const int64_t columns = half_fractals_ ? 8 : 16;
      if (n_ % columns) u_.Fail("n is " + std::to_string(n_) + ", nz2nz takes multiples of " + std::to_string(columns));
      if (half_fractals_ && d_.unit_flag != kUnitOff) u_.Fail("unit_flag with split fractals");
      break;
    }
  }
  whole("the destination stride", dst_stride_ * element_);
  if (d_.split == Split::kRows && m_ % 2) u_.Fail("m is " + std::to_string(m_) + ", split=\"M\" takes an even number");
  if (d_.split == Split::kColumns && n_ % 32) {
    u_.Fail("n is " + std::to_string(n_) + ", split=\"N\" takes multiples of 32");
  }
}

void Store::ReadParameters() {
  if (d_.quant_vector) {
    const uint8_t* p = u_.In(memory_.fixpipe, v_[d_.quant_at], 0, n_ * 8, 128, Access::kRead);
    for (int64_t n = 0; n < n_; ++n) {
      uint64_t word;
      std::memcpy(&word, p + 8 * n, 8);
      quant_.push_back(QuantParameter::Unpack(word));
    }
  } else if (d_.quant != Quant::kNone && d_.quant != Quant::kCast) {
    const float scale = ScalarValue(d_.quant_scalar, v_[d_.quant_at]);
    quant_.push_back(QuantParameter::Unpack(BitCast<uint32_t>(scale)));
  } else {
    quant_.push_back(QuantParameter());
  }
  if (d_.relu == ReluMode::kVector) {
    const uint8_t* p = u_.In(memory_.fixpipe, v_[d_.relu_at], 0, n_ * 4, 64, Access::kRead);
    slope_.resize(static_cast<size_t>(n_));
    std::memcpy(slope_.data(), p, static_cast<size_t>(n_ * 4));
  } else {
    slope_.push_back(d_.relu == ReluMode::kScalar ? ScalarValue(d_.relu_scalar, v_[d_.relu_at]) : 0.0f);
  }
  if (d_.clip_at >= 0) clip_ = ScalarValue(d_.clip_type, v_[d_.clip_at]);
}

// Whole fractals are read, so their units count. f(first byte, bytes) for each run of them, until it says no.
template <class F>
bool Store::ForUnits(F f) {
  const int64_t bytes = RoundUp(m_, kFractalRows) * kAccRowBytes;
  for (int64_t r = 0; r < matrices_; ++r) {
    for (int64_t n = 0; n < n_; n += kAccColumns) {
      const int64_t first = OffsetOf(v_[0]) + r * matrix_src_ * kAccRowBytes + AccOffset(0, n, src_stride_);
      u_.Place(memory_.l0c, static_cast<uint64_t>(first), 0, bytes, 1);
      if (!f(first, bytes)) return false;
    }
  }
  return true;
}

bool Store::Run() {
  Read();
  if (m_ == 0 || n_ == 0 || matrices_ == 0) return true;
  CheckShape();
  if (d_.unit_flag != kUnitOff) {
    const auto set = [&](int64_t first, int64_t bytes) { return UnitsAre(memory_, first, bytes, 1); };
    if (!ForUnits(set)) return false;
    ForUnits([&](int64_t first, int64_t bytes) {
      UnitsPassed(core_, kPipeFix, first, bytes, 1);
      return true;
    });
  }
  // Sums of floats depend on the order of the blocks, everything else does not.
  if (IsFloat(atomic_.type) && atomic_.operation == StoreAtomic::kAdd && d_.target == Space::kGm) core_.AwaitTurn();
  ReadParameters();
  ++core_.dma_commands;
  core_.dma_bytes += matrices_ * m_ * n_ * element_;
  row_.resize(static_cast<size_t>(RoundUp(n_, kAccColumns)));
  out_.resize(static_cast<size_t>(n_ * element_));
  u_.Place(memory_.l0c, v_[0], 0, 4, 64);
  for (int64_t r = 0; r < matrices_; ++r) {
    for (int64_t m = 0; m < m_; ++m) StoreRow(r, m);
  }
  if (d_.unit_flag == kUnitCheckAndChange) {
    ForUnits([&](int64_t first, int64_t bytes) {
      ChangeUnits(core_, kPipeFix, memory_, first, bytes, 0);
      return true;
    });
  }
  return true;
}

void Store::StoreRow(int64_t matrix, int64_t m) {
  for (int64_t n = 0; n < n_; n += kAccColumns) {
    const int64_t offset = matrix * matrix_src_ * kAccRowBytes + AccOffset(m * row_step_, n, src_stride_);
    std::memcpy(row_.data() + n, u_.In(memory_.l0c, v_[0], offset, kAccRowBytes, 4, Access::kRead), kAccRowBytes);
  }
  Convert(0, n_);
  Write(matrix, m, 0, n_);
}

void Store::Convert(int64_t first, int64_t count) {
  const bool plain = d_.quant == Quant::kNone && d_.relu == ReluMode::kNone;
  if (plain) {
    std::memcpy(out_.data(), row_.data() + first, static_cast<size_t>(count * element_));
    return;
  }
  const bool preserve = d_.sat == StoreSat::kPreserveNan;
  // Without a word, scaled results saturate and a cast to bf16 does, except that NaN stays; a cast to f16 does not.
  bool saturate = d_.sat == StoreSat::kOn || preserve;
  bool preserve_nan = preserve;
  if (d_.sat == StoreSat::kDefault) {
    saturate = d_.quant != Quant::kCast || d_.result == DType::kBF16;
    preserve_nan = d_.quant == Quant::kCast || ByteSize(d_.result) == 1;
  }
  auto put = [&](int64_t i, auto value) { std::memcpy(out_.data() + i * element_, &value, sizeof(value)); };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = first + i;
    const QuantParameter& p = Parameter(n);
    float x = row_[static_cast<size_t>(n)];
    if (d_.source == DType::kI32) {
      const int32_t whole = BitCast<int32_t>(x);
      if (d_.quant == Quant::kNone && (d_.relu == ReluMode::kNormal || whole >= 0)) {
        put(i, std::max(whole, 0));
        continue;
      }
      x = static_cast<float>(whole);
    }
    if (d_.quant == Quant::kHalfInteger) x = ToFloat(FromFloat<F16>(x));
    x = ScaleAndRelu(x, p.multiplier, d_.relu, Slope(n));
    if (d_.clip_at >= 0 && x > clip_) x = clip_;
    switch (d_.result) {
      case DType::kF32:
        put(i, x);
        break;
      case DType::kF16:
        put(i, NarrowResult<F16>(x, saturate, preserve_nan));
        break;
      case DType::kBF16:
        put(i, NarrowResult<BF16>(x, saturate, preserve_nan));
        break;
      case DType::kF8E4M3:
        put(i, static_cast<uint8_t>(EncodeFloat8<E4M3>(x, saturate && !(preserve_nan && x != x))));
        break;
      case DType::kHiF8:
        put(i, EncodeHif8(x, d_.quant == Quant::kScaledHybrid, saturate && !(preserve_nan && x != x)));
        break;
      case DType::kI8:
      case DType::kU8:
        put(i, QuantizeByte(x, p));
        break;
      case DType::kI16:
        put(i, QuantizeInteger<int16_t>(x, p));
        break;
      default:
        put(i, QuantizeInteger<int32_t>(x, p));
        break;
    }
  }
}

// Converted numbers of row m from column n on, to where the layout wants them.
void Store::Write(int64_t matrix, int64_t m, int64_t n, int64_t count) {
  const int64_t base = matrix * matrix_dst_;
  const uint8_t* from = out_.data();
  switch (d_.layout) {
    case Layout::kRows:
      if (d_.split == Split::kColumns) {
        const int64_t half = n_ / 2;
        WriteBytes(base + m * dst_stride_, from, half, m, 0);
        WriteBytes(base + m * dst_stride_, from + half * element_, half, m, half);
      } else {
        const int64_t row = d_.split == Split::kRows ? m % (m_ / 2) : m;
        WriteBytes(base + row * dst_stride_, from, count, m, n);
      }
      break;
    case Layout::kColumns:
      for (int64_t i = 0; i < count; ++i)
        WriteBytes(base + (n + i) * dst_stride_ + m, from + i * element_, 1, m, n + i);
      break;
    case Layout::kFractals: {
      const int64_t columns = half_fractals_ ? 8 : 16;
      for (int64_t i = 0; i < count; i += columns) {
        const int64_t fractal = (n + i) / columns;
        WriteBytes(base + fractal * dst_stride_ + m * columns, from + i * element_, columns, m, n + i);
      }
      break;
    }
  }
}

// Elements from `element` of the destination on; m and n tell which core's UB a split sends them to.
void Store::WriteBytes(int64_t element, const uint8_t* from, int64_t elements, int64_t m, int64_t n) {
  const int64_t offset = element * element_, bytes = elements * element_;
  const int64_t alignment = d_.layout == Layout::kColumns ? element_ : kStoreBlock;
  if (d_.target == Space::kGm) {
    uint8_t* to = u_.context.Gm(u_.in, v_[1], offset, bytes, atomic_.GmAccess(), element_);
    if (__builtin_expect(atomic_.type == DType::kNone, 1)) {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    } else {
      CombineRow(u_, atomic_, to, from, bytes);
    }
    return;
  }
  if (d_.target == Space::kMat) {
    std::memcpy(u_.In(memory_.l1, v_[1], offset, bytes, alignment, Access::kWrite), from, static_cast<size_t>(bytes));
    return;
  }
  int64_t core = sub_block_;
  if (d_.split == Split::kRows) core = m >= m_ / 2;
  if (d_.split == Split::kColumns) core = n >= n_ / 2;
  const Context& target = core_.shared->vector_cores[core]->scalar();
  const MemoryView ub{target.ub, target.ub_bytes,
                      core ? "UB of AIV1:" : "UB of AIV0:", core ? Memory::kUb1 : Memory::kUb0};
  std::memcpy(u_.In(ub, v_[1], offset, bytes, alignment, Access::kWrite), from, static_cast<size_t>(bytes));
}

bool RunStore(Core& core, const Command& c) { return Store(core, c).Run(); }

// The atomic mode at issue goes along as the last value.
const Inst* Issue(Context& c, const Inst* in) {
  const uint32_t* slots = c.code->extra.data() + in->imm;
  uint64_t* values = c.core->queue(kPipeFix).Push(&RunStore, in, in->d + 1);
  for (uint32_t i = 0; i < in->d; ++i) values[i] = c.S<uint64_t>(slots[i]);
  values[in->d] = c.core->store_atomic.Pack();
  c.core->Issued(kPipeFix);
  return in + 1;
}

// --- compilation ---

struct QuantMode {
  DType source;
  Quant quant;
  DType result;
};

// By name without _vec and _scalar. Results of 4 bits have no element type in the API.
const std::map<std::string, QuantMode>& QuantModes() {
  static const std::map<std::string, QuantMode> modes = {
      {"f32_f16", {DType::kF32, Quant::kCast, DType::kF16}},
      {"f32_bf16", {DType::kF32, Quant::kCast, DType::kBF16}},
      {"qf322hif8_pre", {DType::kF32, Quant::kScaled, DType::kHiF8}},
      {"qf322hif8_pre_hybrid", {DType::kF32, Quant::kScaledHybrid, DType::kHiF8}},
      {"qf322fp8_pre", {DType::kF32, Quant::kScaled, DType::kF8E4M3}},
      {"qf322f32_pre", {DType::kF32, Quant::kScaled, DType::kF32}},
      {"qf322f16_pre", {DType::kF32, Quant::kScaled, DType::kF16}},
      {"qf322bf16_pre", {DType::kF32, Quant::kScaled, DType::kBF16}},
      {"qf322b8_pre", {DType::kF32, Quant::kInteger, DType::kI8}},
      {"qf162b8_pre", {DType::kF32, Quant::kHalfInteger, DType::kI8}},
      {"deqs32_int", {DType::kI32, Quant::kInteger, DType::kI32}},
      {"req8", {DType::kI32, Quant::kInteger, DType::kI8}},
      {"deqs16", {DType::kI32, Quant::kInteger, DType::kI16}},
      {"qf162s16_pre", {DType::kI32, Quant::kHalfInteger, DType::kI16}},
      {"deqf16", {DType::kI32, Quant::kScaled, DType::kF16}},
      {"qs322bf16_pre", {DType::kI32, Quant::kScaled, DType::kBF16}},
  };
  return modes;
}

bool EndsWith(const std::string& s, const std::string& end) {
  return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

void ParseQuant(Builder& b, const Op& op, Fixpipe* d, int* next) {
  std::string mode = b.TextAttribute(op, "pre_quant", "");
  if (mode.empty() || mode == "no_convert") {
    b.Expect(d->source == d->result,
             std::string("a store of ") + Name(d->source) + " as " + Name(d->result) + " needs a pre_quant mode");
    return;
  }
  d->quant_vector = EndsWith(mode, "_vec");
  const std::string family = mode.substr(0, mode.size() - (d->quant_vector ? 4 : EndsWith(mode, "_scalar") ? 7 : 0));
  auto it = QuantModes().find(family);
  if (it == QuantModes().end()) b.Fail("unknown pre_quant mode " + mode);
  const QuantMode& q = it->second;
  const bool result_fits = q.result == d->result || (q.result == DType::kI8 && d->result == DType::kU8);
  b.Expect(q.source == d->source && result_fits,
           "pre_quant mode " + mode + " does not turn " + Name(d->source) + " into " + Name(d->result));
  d->quant = q.quant;
  d->quant_at = (*next)++;
  const uint32_t payload = op.operands.at(static_cast<size_t>(d->quant_at));
  if (d->quant_vector) {
    ExpectSpace(b, payload, Space::kScaling);
  } else {
    b.ExpectScalar(payload);
    d->quant_scalar = b.Type(payload).dtype;
    b.Expect(IsFloat(d->quant_scalar), "the payload of pre_quant is no float scalar");
  }
}

void ParseRelu(Builder& b, const Op& op, Fixpipe* d, int* next) {
  const std::string mode = b.TextAttribute(op, "pre_relu", "");
  if (mode == "normal_relu") d->relu = ReluMode::kNormal;
  if (mode == "scalar_relu") d->relu = ReluMode::kScalar;
  if (mode == "vector_relu") d->relu = ReluMode::kVector;
  b.Expect(mode.empty() || mode == "no_relu" || d->relu != ReluMode::kNone, "unknown pre_relu mode " + mode);
  if (d->relu == ReluMode::kScalar || d->relu == ReluMode::kVector) {
    d->relu_at = (*next)++;
    const uint32_t payload = op.operands.at(static_cast<size_t>(d->relu_at));
    if (d->relu == ReluMode::kVector) {
      ExpectSpace(b, payload, Space::kScaling);
    } else {
      b.ExpectScalar(payload);
      d->relu_scalar = b.Type(payload).dtype;
      b.Expect(IsFloat(d->relu_scalar), "the payload of scalar_relu is no float scalar");
    }
  }
  if (b.IntegerAttribute(op, "clip", 0)) {
    d->clip_at = (*next)++;
    const uint32_t payload = op.operands.at(static_cast<size_t>(d->clip_at));
    b.ExpectScalar(payload);
    d->clip_type = b.Type(payload).dtype;
    const bool integer = ByteSize(d->result) <= 2 && IsInteger(d->result) && IsInteger(d->clip_type);
    b.Expect(integer || (d->result == DType::kF16 && d->clip_type == DType::kF16),
             "clip is for results of f16 and of 8 and 16-bit integers, of the same family");
  }
}

void ParseLayout(Builder& b, const Op& op, Fixpipe* d, int* next) {
  const std::string layout = b.TextAttribute(op, "layout", "");
  b.Expect(layout.empty() || layout == "nz2nd" || layout == "nz2dn" || layout == "nz2nz", "unknown layout " + layout);
  if (layout == "nz2dn") d->layout = Layout::kColumns;
  if (layout == "nz2nz") d->layout = Layout::kFractals;
  if (d->layout != Layout::kRows) d->layout_at = (*next)++;
  if (b.IntegerAttribute(op, "loop3", 0)) {
    b.Expect(d->layout != Layout::kFractals, "nz2nz does not repeat (loop3)");
    d->loop3_at = *next;
    *next += 3;
  }
  b.Expect(d->layout != Layout::kFractals || d->result == DType::kF32, "nz2nz stores f32");
}

void ParseAtomic(Builder& b, const Op& op, Fixpipe* d) {
  const std::string type = b.TextAttribute(op, "atomic_type", ""), operation = b.TextAttribute(op, "atomic_op", "");
  if (type.empty()) return;
  static const std::map<std::string, DType> types = {{"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16},
                                                     {"s32", DType::kI32}, {"s16", DType::kI16}, {"s8", DType::kI8}};
  static const std::map<std::string, StoreAtomic::Operation> operations = {
      {"add", StoreAtomic::kAdd}, {"max", StoreAtomic::kMax}, {"min", StoreAtomic::kMin}};
  b.Expect(d->target == Space::kGm, "only stores to GM are atomic");
  b.Expect(types.count(type) && operations.count(operation), "unknown atomic " + type + " " + operation);
  d->own_atomic = true;
  d->atomic = {types.at(type), operations.at(operation)};
  b.Expect(ByteSize(d->atomic.type) == ByteSize(d->result), "the atomic type is not as wide as the result");
  b.scope().function->ordered = true;
}

template <Space kTarget>
void Compile(Builder& b, const Op& op) {
  b.Expect(op.operands.size() >= 6 && op.results.empty(), "expected a source, a destination and four numbers");
  Fixpipe d;
  d.target = kTarget;
  ExpectSpace(b, op.operands[0], Space::kAcc);
  ExpectSpace(b, op.operands[1], kTarget);
  d.source = b.Type(op.operands[0]).dtype, d.result = b.Type(op.operands[1]).dtype;
  b.Expect(d.source == DType::kF32 || d.source == DType::kI32, "L0C holds f32 or i32");
  int next = 6;
  const std::string split = b.TextAttribute(op, "split", "");
  if (kTarget == Space::kUb) {
    b.Expect(b.scope().mixed, "a kernel for cube cores has no UB");
    b.Expect(split.empty() || split == "M" || split == "N", "unknown split " + split);
    if (split == "M") d.split = Split::kRows;
    if (split == "N") d.split = Split::kColumns;
    if (split.empty()) d.sub_block = next++;
  }
  ParseQuant(b, op, &d, &next);
  ParseRelu(b, op, &d, &next);
  ParseLayout(b, op, &d, &next);
  ParseAtomic(b, op, &d);
  const bool plain = d.quant == Quant::kNone && d.relu == ReluMode::kNone && d.clip_at < 0 &&
                     d.layout == Layout::kRows && d.loop3_at < 0;
  b.Expect(d.split == Split::kNone || plain, "a split store does not convert, and stores rows (nz2nd)");
  const std::string unit_flag = b.TextAttribute(op, "unit_flag", "");
  b.Expect(unit_flag.empty() || unit_flag == "check_only" || unit_flag == "check_and_clear",
           "unknown unit_flag " + unit_flag);
  if (!unit_flag.empty()) d.unit_flag = unit_flag == "check_only" ? kUnitCheck : kUnitCheckAndChange;
  static const std::map<std::string, StoreSat> words = {{"", StoreSat::kDefault},
                                                        {"on", StoreSat::kOn},
                                                        {"off", StoreSat::kOff},
                                                        {"preserve_nan", StoreSat::kPreserveNan}};
  const std::string sat = b.TextAttribute(op, "sat", "");
  b.Expect(words.count(sat) != 0, "unknown sat " + sat);
  d.sat = words.at(sat);
  b.ExpectCounts(op, static_cast<size_t>(next), 0);
  d.values = next;
  EmitCommand(b, &Issue, OperandSlots(b, op.operands), d);
}

}  // namespace

bool SkipsRowsOfL0c(const Core& core, const Command& command) {
  const Fixpipe& d = DetailsOf<Fixpipe>(core, command);
  return d.layout == Layout::kColumns && command.values[d.layout_at] != 1;
}

std::string DescribeFixpipeWait(const Core&, const Command& c) {
  if (c.fn != &RunStore) return "";
  return "the unit flags of L0C from byte " + std::to_string(OffsetOf(c.values[0])) +
         " on to be set by a mad with unit_flag=\"check_and_set\"";
}

const OpTable& FixpipeOps() {
  static const OpTable table = {
      {"mte_l0c_gm", kOnScalar | kCubeCore, &Compile<Space::kGm>},
      {"mte_l0c_ub", kOnScalar | kCubeCore, &Compile<Space::kUb>},
      {"mte_l0c_l1", kOnScalar | kCubeCore, &Compile<Space::kMat>},
  };
  return table;
}

}  // namespace pto::engine
