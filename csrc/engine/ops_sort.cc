// Sorting helpers, UB to UB: commands of pipe V. A record has 8 bytes: the score (f32, or f16 in the low half) and a
// 32-bit index.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "builder.h"
#include "core.h"

namespace pto::engine {
namespace {

constexpr int64_t kRecord = 8;
constexpr int kGroup = 32;  // records sorted by one repeat

// Larger scores have larger keys: NaN above infinity, NaN with the sign bit below minus infinity, +0 above -0.
inline uint32_t Key(uint32_t score, bool half) {
  const uint32_t bits = half ? score << 16 : score;
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

struct Record {
  uint32_t score, index;
};
static_assert(sizeof(Record) == kRecord, "records are packed");

// A command of pipe V, with its failures attributed to it.
Context OnV(Core& core) {
  Context c = core.scalar();
  c.pipe = "V";
  return c;
}

// values: destination, scores, indices, repeat; inst->b: f16
bool RunSort(Core& core, const Command& command) {
  const Context c = OnV(core);
  const Inst* in = command.inst;
  const uint64_t* v = command.values;
  const bool half = in->b != 0;
  const int64_t repeat = static_cast<int64_t>(v[3]), bytes = half ? 2 : 4;
  if (repeat < 0 || repeat > 255) c.Fail(in, "repeat is " + std::to_string(repeat) + ", it must be 0 to 255");
  for (int64_t r = 0; r < repeat; ++r) {
    const uint8_t* scores = c.Ub(in, v[1], r * kGroup * bytes, kGroup * bytes, 32, Access::kRead);
    const uint8_t* indices = c.Ub(in, v[2], r * kGroup * 4, kGroup * 4, 32, Access::kRead);
    Record records[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      records[i].score = 0;
      std::memcpy(&records[i].score, scores + i * bytes, static_cast<size_t>(bytes));
      std::memcpy(&records[i].index, indices + 4 * i, 4);
    }
    std::stable_sort(records, records + kGroup,
                     [half](const Record& a, const Record& b) { return Key(a.score, half) > Key(b.score, half); });
    std::memcpy(c.Ub(in, v[0], r * kGroup * kRecord, sizeof(records), 32, Access::kWrite), records, sizeof(records));
  }
  return true;
}

// values: destination, 4 lists, lengths, configuration
bool RunMerge(Core& core, const Command& command) {
  const Context c = OnV(core);
  const Inst* in = command.inst;
  const uint64_t* v = command.values;
  const bool half = in->b != 0;
  const uint64_t counts = v[5], config = v[6];
  const int64_t repeat = static_cast<int64_t>(config & 0xFF);
  const int valid = static_cast<int>(config >> 8 & 0xF);
  const bool stop = config >> 12 & 1;  // at the first exhausted list
  if (valid != 0x3 && valid != 0x7 && valid != 0xF) {
    c.Fail(in, "the mask of valid lists is " + std::to_string(valid) + ", it must be 3, 7 or 15");
  }
  const int lists = valid == 0x3 ? 2 : valid == 0x7 ? 3 : 4;
  int64_t length[4] = {}, total = 0;
  for (int i = 0; i < lists; ++i) total += length[i] = static_cast<int64_t>(counts >> (16 * i) & 0xFFFF);
  if (repeat > 1) {
    // The next repeat takes the records behind all four lists.
    bool joined = lists == 4 && !stop;
    for (int i = 1; i < lists; ++i) {
      joined = joined && length[i] == length[0] && OffsetOf(v[1 + i]) == OffsetOf(v[i]) + length[0] * kRecord;
    }
    if (!joined) {
      c.Fail(in,
             "several repeats need four lists of one length, one behind the other, and no stop at an exhausted list");
    }
  }
  std::vector<Record> out;
  for (int64_t r = 0; r < repeat; ++r) {
    const uint8_t* list[4] = {};
    for (int i = 0; i < lists; ++i)
      list[i] = c.Ub(in, v[1 + i], r * total * kRecord, length[i] * kRecord, kRecord, Access::kRead);
    int64_t used[4] = {};
    out.clear();
    while (static_cast<int64_t>(out.size()) < total) {
      int best = -1;
      Record record = {};
      bool exhausted = false;
      for (int i = 0; i < lists; ++i) {
        if (used[i] == length[i]) {
          exhausted = true;
          continue;
        }
        Record head;
        std::memcpy(&head, list[i] + used[i] * kRecord, sizeof(head));
        if (best < 0 || Key(head.score, half) > Key(record.score, half)) best = i, record = head;
      }
      if (stop && exhausted) break;
      out.push_back(record);
      ++used[best];
    }
    const int64_t bytes = static_cast<int64_t>(out.size()) * kRecord;
    std::memcpy(c.Ub(in, v[0], r * total * kRecord, bytes, kRecord, Access::kWrite), out.data(),
                static_cast<size_t>(bytes));
  }
  return true;
}

// imm: first slot in the extra list, d: number of values
template <CommandFn kRun>
const Inst* Issue(Context& c, const Inst* in) {
  const uint32_t* slots = c.code->extra.data() + in->imm;
  uint64_t* values = c.core->queue(kPipeV).Push(kRun, in, in->d);
  for (uint32_t i = 0; i < in->d; ++i) values[i] = c.S<uint64_t>(slots[i]);
  c.core->Issued(kPipeV);
  return in + 1;
}

void Emit(Builder& b, const Op& op, Handler issue, size_t pointers, DType score) {
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (i < pointers) {
      b.ExpectPointer(op.operands[i]);
      b.Expect(b.Type(op.operands[i]).space == Space::kUb, "the operands are in UB");
      slots.push_back(b.Scalar(op.operands[i]));
    } else {
      slots.push_back(b.Int64(op.operands[i]));
    }
  }
  b.Expect(score == DType::kF16 || score == DType::kF32, std::string("scores are f16 or f32, found ") + Name(score));
  const int64_t first = static_cast<int64_t>(b.code().extra.size());
  b.code().extra.insert(b.code().extra.end(), slots.begin(), slots.end());
  Inst& in = b.Emit(issue);
  in.imm = first, in.d = static_cast<uint32_t>(slots.size()), in.b = score == DType::kF16;
}

void CompileSort(Builder& b, const Op& op) {
  b.ExpectCounts(op, 4, 0);
  const DType index = b.Type(op.operands[2]).dtype;
  b.Expect(IsInteger(index) && ByteSize(index) == 4, std::string("indices have 32 bits, found ") + Name(index));
  Emit(b, op, &Issue<&RunSort>, 3, b.Type(op.operands[1]).dtype);
}

void CompileMerge(Builder& b, const Op& op) {
  b.ExpectCounts(op, 7, 0);
  for (int i = 2; i <= 4; ++i) {
    b.Expect(b.Type(op.operands[i]).dtype == b.Type(op.operands[1]).dtype, "the lists have different types");
  }
  Emit(b, op, &Issue<&RunMerge>, 5, b.Type(op.operands[1]).dtype);
}

}  // namespace

const OpTable& SortOps() {
  static const OpTable table = {
      {"vbitsort", kOnScalar | kVectorCore, &CompileSort},
      {"vmrgsort4", kOnScalar | kVectorCore, &CompileMerge},
  };
  return table;
}

}  // namespace pto::engine
