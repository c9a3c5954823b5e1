// Reads the program form's bytes.
#include "program.h"

#include <cstring>

#include "engine.h"

namespace pto::engine {
namespace {

constexpr uint32_t kVersion = 1;
constexpr int kMaxRegionDepth = 64;

class Reader {
 public:
  Reader(const void* data, size_t size) : p_(static_cast<const uint8_t*>(data)), end_(p_ + size) {}

  template <class T>
  T Read() {
    Need(sizeof(T));
    T v;
    std::memcpy(&v, p_, sizeof(T));
    p_ += sizeof(T);
    return v;
  }

  uint32_t U32() { return Read<uint32_t>(); }

  // A count of items that each take at least `least` bytes: an absurd count fails here, not in an allocation.
  uint32_t Count(size_t least) {
    uint32_t n = U32();
    if (static_cast<uint64_t>(n) * least > static_cast<uint64_t>(end_ - p_))
      Bad("a count exceeds the rest of the bytes");
    return n;
  }

  std::string RawString() {
    uint32_t n = Count(1);
    std::string s(reinterpret_cast<const char*>(p_), n);
    p_ += n;
    return s;
  }

  void ReadStrings() {
    uint32_t n = Count(4);
    strings_.reserve(n);
    for (uint32_t i = 0; i < n; ++i) strings_.push_back(RawString());
  }

  const std::string& Text(uint64_t index) {
    if (index >= strings_.size()) Bad("a string index is out of range");
    return strings_[index];
  }
  const std::string& Text() { return Text(U32()); }

  bool AtEnd() const { return p_ == end_; }

  [[noreturn]] void Bad(const std::string& why) { throw Error("not a valid program: " + why, place); }

  ErrorPlace place;

 private:
  void Need(size_t n) {
    if (static_cast<size_t>(end_ - p_) < n) Bad("the bytes end too early");
  }
  const uint8_t* p_;
  const uint8_t* end_;
  std::vector<std::string> strings_;
};

std::vector<uint32_t> ReadIds(Reader& r, size_t n_values) {
  std::vector<uint32_t> ids(r.Count(4));
  for (uint32_t& id : ids) {
    id = r.U32();
    if (id >= n_values) r.Bad("a value id is out of range");
  }
  return ids;
}

Region ReadRegion(Reader& r, size_t n_values, int depth);

Op ReadOp(Reader& r, size_t n_values, int depth) {
  Op op;
  op.name = r.Text();
  op.line = static_cast<int>(r.U32());
  r.place.op = op.name;
  r.place.line = op.line;
  op.operands = ReadIds(r, n_values);
  op.results = ReadIds(r, n_values);
  uint32_t n = r.Count(13);
  for (uint32_t i = 0; i < n; ++i) {
    Attribute a;
    a.key = r.Text();
    uint8_t tag = r.Read<uint8_t>();
    if (tag > 2) r.Bad("attribute " + a.key + " has an unknown tag");
    a.tag = static_cast<Attribute::Tag>(tag);
    if (a.tag == Attribute::kInteger) {
      a.integer = r.Read<int64_t>();
      a.number = static_cast<double>(a.integer);
    } else if (a.tag == Attribute::kString) {
      a.text = r.Text(r.Read<uint64_t>());
    } else {
      a.number = r.Read<double>();
    }
    op.attributes.push_back(std::move(a));
  }
  n = r.Count(8);
  for (uint32_t i = 0; i < n; ++i) op.regions.push_back(ReadRegion(r, n_values, depth + 1));
  return op;
}

Region ReadRegion(Reader& r, size_t n_values, int depth) {
  if (depth > kMaxRegionDepth) r.Bad("regions are nested too deeply");
  Region region;
  region.arguments = ReadIds(r, n_values);
  uint32_t n = r.Count(24);
  region.ops.reserve(n);
  for (uint32_t i = 0; i < n; ++i) region.ops.push_back(ReadOp(r, n_values, depth));
  return region;
}

ValueType ReadType(Reader& r) {
  ValueType t;
  uint8_t kind = r.Read<uint8_t>(), dtype = r.Read<uint8_t>(), space = r.Read<uint8_t>();
  t.lanes = r.U32();
  if (kind >= kKindCount || dtype >= kDTypeCount || space >= kSpaceCount) r.Bad("an unknown type code");
  t.kind = static_cast<Kind>(kind);
  t.dtype = static_cast<DType>(dtype);
  t.space = static_cast<Space>(space);
  const char* why = nullptr;
  switch (t.kind) {
    case Kind::kScalar:
      if (t.dtype == DType::kNone) why = "a scalar without an element type";
      break;
    case Kind::kPointer:
      if (t.dtype == DType::kNone || t.space == Space::kNone) why = "a pointer without element type or space";
      break;
    case Kind::kVector:
      if (t.lanes * static_cast<uint64_t>(ByteSize(t.dtype)) != 256) why = "a vector register of other than 256 bytes";
      break;
    case Kind::kMask:
      if (t.lanes != 256 && t.lanes != 128 && t.lanes != 64) why = "a mask of other than 256, 128 or 64 lanes";
      break;
    case Kind::kShortVector:
      if (t.lanes < 1 || t.lanes > 64 || ByteSize(t.dtype) == 0) why = "a short vector of other than 1 to 64 elements";
      break;
    case Kind::kAlignState:
      break;
  }
  if (why) r.Bad(why);
  return t;
}

FunctionTree ReadFunction(Reader& r) {
  FunctionTree f;
  f.name = r.Text();
  f.kernel_kind = r.Text();
  f.line = static_cast<int>(r.U32());
  r.place.function = f.name;
  r.place.line = f.line;
  uint32_t n = r.Count(8);
  for (uint32_t i = 0; i < n; ++i) {
    f.parameter_names.push_back(r.Text());
    f.parameter_values.push_back(r.U32());
  }
  n = r.Count(7);
  f.types.reserve(n);
  for (uint32_t i = 0; i < n; ++i) f.types.push_back(ReadType(r));
  for (uint32_t id : f.parameter_values) {
    if (id >= n) r.Bad("a parameter's value id is out of range");
  }
  f.body = ReadRegion(r, n, 0);
  return f;
}

}  // namespace

ProgramTree ReadProgram(const void* data, size_t size) {
  Reader r(data, size);
  if (size < 8 || std::memcmp(data, "PTOP", 4) != 0) r.Bad("it does not start with PTOP");
  r.U32();
  uint32_t version = r.U32();
  if (version != kVersion) r.Bad("version " + std::to_string(version) + " is not supported");
  r.ReadStrings();
  ProgramTree program;
  program.source_file = r.Text();
  r.place.file = program.source_file;
  uint32_t n = r.Count(20);
  for (uint32_t i = 0; i < n; ++i) program.functions.push_back(ReadFunction(r));
  if (!r.AtEnd()) r.Bad("bytes are left after the last function");
  return program;
}

}  // namespace pto::engine
