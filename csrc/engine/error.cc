// Error text and the names of types.
#include "engine.h"

namespace pto::engine {
namespace {

std::string Readable(const std::string& message, const ErrorPlace& p) {
  std::string s = message;
  if (!p.function.empty()) s += "\n  in kernel " + p.function;
  if (!p.op.empty()) s += "\n  in " + p.op;
  if (!p.file.empty() || p.line >= 0) {
    s +=
        "\n  in " + (p.file.empty() ? std::string("line") : p.file) + (p.line >= 0 ? ":" + std::to_string(p.line) : "");
  }
  if (p.core >= 0) {
    s += "\n  in block " + std::to_string(p.core) + (p.core_name.empty() ? "" : ", " + p.core_name) +
         (p.pipe.empty() ? "" : ", pipe " + p.pipe);
  }
  return s;
}

}  // namespace

Error::Error(const std::string& text, ErrorPlace where)
    : std::runtime_error(Readable(text, where)),
      message(text),
      place(std::move(where)),
      line(place.line),
      file(place.file),
      function(place.function),
      op(place.op) {}

const char* Name(DType t) {
  static const char* const kNames[] = {"none",   "i1",     "i8",     "ui8",   "i16",      "ui16",    "i32",
                                       "ui32",   "i64",    "ui64",   "index", "f16",      "bf16",    "f32",
                                       "f8e4m3", "f8e5m2", "f8e8m0", "hif8",  "f4e2m1x2", "f4e1m2x2"};
  return kNames[static_cast<int>(t)];
}

const char* Name(Space s) {
  static const char* const kNames[] = {"none", "gm", "ub", "mat", "left", "right", "acc", "bias", "scaling", "stack"};
  return kNames[static_cast<int>(s)];
}

const char* Name(Kind k) {
  static const char* const kNames[] = {"scalar", "pointer", "vector register", "mask", "short vector", "align state"};
  return kNames[static_cast<int>(k)];
}

}  // namespace pto::engine
