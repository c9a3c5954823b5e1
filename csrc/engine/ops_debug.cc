// print and trap.
#include <cstdio>
#include <string>

#include "builder.h"
#include "core.h"
#include "dispatch.h"
#include "scalar_words.h"

namespace pto::engine {
namespace {

// A format has one conversion at most, of the kind that fits the value: what stands before and behind it, with %% as %.
struct Format {
  std::string before, conversion, after;
};

template <class T>
std::string Text(const Format& f, T value) {
  if (f.conversion.empty()) return f.before + f.after;
  char buffer[512];
  const char* const spec = f.conversion.c_str();
  if constexpr (kIsFloat<T>) {
    std::snprintf(buffer, sizeof(buffer), spec, static_cast<double>(ToFloat(value)));
  } else if (f.conversion.back() == 'd' || f.conversion.back() == 'i') {
    std::snprintf(buffer, sizeof(buffer), spec, static_cast<long long>(value));
  } else {
    std::snprintf(buffer, sizeof(buffer), spec,
                  static_cast<unsigned long long>(static_cast<std::make_unsigned_t<T>>(value)));
  }
  return f.before + buffer + f.after;
}

const Format& FormatOf(const Context& c, const Inst* in) {
  return *reinterpret_cast<const Format*>(c.core->function().formats[static_cast<size_t>(in->imm)].get());
}

// a: value, imm: number of the format
template <class T>
const Inst* Print(Context& c, const Inst* in) {
  c.core->text += Text(FormatOf(c, in), c.S<T>(in->a));
  return in + 1;
}

template <class T>
const Inst* PrintLanes(Context& c, const Inst* in) {
  const Format& f = FormatOf(c, in);
  const T* a = c.V<T>(in->a);
  for (int i = c.mask.lo; i < c.mask.hi; ++i) {
    if (c.mask.all || c.mask.active[i]) c.core->text += Text(f, a[i]);
  }
  return in + 1;
}

// imm: number of the message plus one, 0 without one
std::string Reason(const Context& c, const Inst* in) {
  if (in->imm == 0) return "the kernel has stopped itself";
  const auto& message = c.core->function().formats[static_cast<size_t>(in->imm - 1)];
  return "the kernel has stopped itself (" + reinterpret_cast<const Format*>(message.get())->before + ")";
}

const Inst* Trap(Context& c, const Inst* in) { c.Fail(in, Reason(c, in)); }

const Inst* TrapLanes(Context& c, const Inst* in) {
  int thread = c.mask.lo;
  while (!c.mask.all && !c.mask.active[thread]) ++thread;
  c.Fail(in, Reason(c, in) + " in thread " + std::to_string(thread) +
                 (c.mask.count > 1 ? " and " + std::to_string(c.mask.count - 1) + " more" : ""));
}

Format Parse(Builder& b, const std::string& text, DType t) {
  Format f;
  std::string* part = &f.before;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *part += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '%') {
      *part += text[i++];
      continue;
    }
    b.Expect(part == &f.before, "the format has more than one conversion");
    size_t end = text.find_first_not_of("-+ #0123456789.", i + 1);
    b.Expect(end != std::string::npos && end - i <= 12, "the format ends inside a conversion");
    f.conversion = text.substr(i, end - i);
    end = text.find_first_not_of("hljztL", end);
    b.Expect(end != std::string::npos, "the format ends inside a conversion");
    const char letter = text[end];
    const bool integer =
        letter == 'd' || letter == 'i' || letter == 'u' || letter == 'x' || letter == 'X' || letter == 'o';
    const bool real =
        letter == 'f' || letter == 'F' || letter == 'e' || letter == 'E' || letter == 'g' || letter == 'G';
    b.Expect(IsFloat(t) ? real : integer,
             std::string("conversion %") + letter + " does not fit a value of type " + Name(t));
    f.conversion += (integer ? "ll" : "") + std::string(1, letter);
    part = &f.after;
    i = end;
  }
  return f;
}

void CompilePrint(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 0);
  b.ExpectScalar(op.operands[0]);
  const DType t = b.Type(op.operands[0]).dtype;
  CompiledFunction& f = *b.scope().function;
  f.formats.push_back(std::make_shared<Format>(Parse(b, b.TextAttribute(op, "fmt", ""), t)));
  f.ordered = true;
  const bool lanes = b.unit() == kOnSimt;
  const Handler h = ForNumber(Stored(t), [lanes](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    return lanes ? &PrintLanes<T> : &Print<T>;
  });
  const uint32_t a = lanes ? b.Lanes(op.operands[0]) : b.Scalar(op.operands[0]);
  Inst& in = b.Emit(h);
  in.a = a, in.imm = static_cast<int64_t>(f.formats.size()) - 1;
}

void CompileTrap(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 0);
  const std::string message = b.TextAttribute(op, "message", "");
  int64_t number = 0;
  if (!message.empty()) {
    CompiledFunction& f = *b.scope().function;
    Format text;
    text.before = message;
    f.formats.push_back(std::make_shared<Format>(std::move(text)));
    number = static_cast<int64_t>(f.formats.size());
  }
  b.Emit(b.unit() == kOnSimt ? &TrapLanes : &Trap).imm = number;
}

}  // namespace

const OpTable& DebugOps() {
  static const OpTable table = {
      {"print", kOnScalar | kOnSimt, &CompilePrint},
      {"trap", kOnScalar | kOnSimt, &CompileTrap},
  };
  return table;
}

}  // namespace pto::engine
