// TVM-FFI functions that run a recorded program directly, without TileLang's host code.
#include <dlpack/dlpack.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/float16.h"
#include "engine/json_text.h"
#include "engine/report.h"
#include "engine/timing_figures.h"
#include "ffi/session.h"
#include "ffi/settings.h"

namespace pto {
namespace {

namespace tf = tvm::ffi;
using engine::Quoted;
using engine::StatsText;

// {"error": {...}}: the caller raises it with its parts.
std::string ErrorText(const engine::Error& e) {
  const engine::ErrorPlace& p = e.place;
  return "{\"error\": {\"message\": " + Quoted(e.message) + ", \"function\": " + Quoted(p.function) +
         ", \"op\": " + Quoted(p.op) + ", \"file\": " + Quoted(p.file) + ", \"line\": " + std::to_string(p.line) +
         ", \"core\": " + std::to_string(p.core) + ", \"core_name\": " + Quoted(p.core_name) +
         ", \"pipe\": " + Quoted(p.pipe) + "}}";
}

engine::Error Refusal(const std::string& function, const std::string& message) {
  engine::ErrorPlace place;
  place.function = function;
  return engine::Error(message, place);
}

engine::Arg TensorArg(const std::string& function, const engine::Parameter& p, const DLTensor* t) {
  if (t->device.device_type != kDLCPU) throw Refusal(function, "argument " + p.name + " is not in host memory");
  int64_t elements = 1, expected = 1;
  for (int i = t->ndim - 1; i >= 0; --i) {
    if (t->strides && t->shape[i] > 1 && t->strides[i] != expected) {
      throw Refusal(function, "argument " + p.name + " is not contiguous");
    }
    expected *= t->shape[i];
    elements *= t->shape[i];
  }
  const int64_t bytes = (elements * t->dtype.bits * t->dtype.lanes + 7) / 8;
  return engine::Arg::Pointer(static_cast<uint8_t*>(t->data) + t->byte_offset, bytes);
}

engine::Arg ScalarArg(const std::string& function, const engine::Parameter& p, const tf::AnyView& value) {
  const engine::DType t = p.type.dtype;
  if (engine::IsFloat(t)) {
    const std::optional<double> x = value.try_cast<double>();
    if (!x) throw Refusal(function, "argument " + p.name + " is not a number");
    if (t == engine::DType::kF32) return engine::Arg::Scalar(engine::BitCast<uint32_t>(static_cast<float>(*x)));
    return engine::Arg::Scalar(engine::RoundToHalf(*x, t == engine::DType::kF16));
  }
  const std::optional<int64_t> x = value.try_cast<int64_t>();
  if (!x) throw Refusal(function, "argument " + p.name + " is not an integer");
  const int bits = 8 * engine::ByteSize(t);
  if (t != engine::DType::kI1 && bits < 64) {
    const int64_t lo = engine::IsUnsigned(t) ? 0 : -(int64_t{1} << (bits - 1));
    const int64_t hi = engine::IsUnsigned(t) ? (int64_t{1} << bits) - 1 : (int64_t{1} << (bits - 1)) - 1;
    if (*x < lo || *x > hi) {
      throw Refusal(function, "argument " + p.name + " = " + std::to_string(*x) + " does not fit " + engine::Name(t));
    }
  }
  return engine::Arg::Scalar(static_cast<uint64_t>(*x));
}

std::string Launch(const tf::Bytes& bytes, const std::string& name, const tf::Array<tf::Any>& values, int64_t grid,
                   int64_t host_threads, int64_t max_steps, int64_t perturbation, const std::string& mad_order,
                   int64_t seed, const std::string& text) {
  try {
    const auto program = engine::Program::Parse(bytes.data(), bytes.size());
    const engine::Function* f = program->Find(name);
    if (!f) throw Refusal(name, "the program has no function " + name);
    if (values.size() != f->parameters.size()) {
      throw Refusal(name, "the function has " + std::to_string(f->parameters.size()) + " parameters, " +
                              std::to_string(values.size()) + " arguments were given");
    }
    std::vector<tf::Any> alive;  // an element read from the array keeps its tensor alive
    std::vector<engine::Arg> args;
    for (size_t i = 0; i < values.size(); ++i) {
      const engine::Parameter& p = f->parameters[i];
      alive.push_back(values[static_cast<int64_t>(i)]);
      if (p.type.kind == engine::Kind::kPointer) {
        const std::optional<tf::Tensor> t = alive.back().try_cast<tf::Tensor>();
        if (!t) throw Refusal(name, "argument " + p.name + " is not a tensor");
        args.push_back(TensorArg(name, p, t->GetDLTensorPtr()));
      } else {
        args.push_back(ScalarArg(name, p, alive.back()));
      }
    }
    engine::LaunchOptions options;
    options.host_threads = static_cast<int>(host_threads);
    if (perturbation >= 0) options.perturbation = static_cast<uint64_t>(perturbation);
    if (max_steps > 0) options.max_steps_per_core = max_steps;
    if (!engine::MadOrder::Parse(mad_order, &options.mad_order)) {
      throw Refusal(name,
                    "the order of summation is " + mad_order + ", not ascending, blocked, reverse or random:SEED");
    }
    options.interleaving_seed = static_cast<uint64_t>(seed);
    engine::LaunchStats stats;
    ffi::LaunchInSession(*program, {name, program->source_file(), text}, args, grid, options, &stats);
    return StatsText(stats);
  } catch (const ffi::BadSetting& bad) {
    return "{\"setting\": {\"message\": " + Quoted(bad.message) + ", \"advice\": " + Quoted(bad.advice) + "}}";
  } catch (const engine::FindingError&) {
    return "{\"finding\": true}";
  } catch (const engine::Error& e) {
    return ErrorText(e);
  }
}

// [{"op": ..., "region": ..., "types": [...], "ulp": ..., "source": ..., "certainty": ...}...]
std::string AccuracyText() {
  std::string out = "[";
  for (const engine::AccuracyFigure& f : engine::AccuracyFigures()) {
    std::string types;
    for (const engine::DType t : f.types) types += (types.empty() ? "" : ", ") + Quoted(engine::Name(t));
    out += std::string(out.size() > 1 ? ", " : "") + "{\"op\": " + Quoted(f.op) + ", \"region\": " + Quoted(f.region) +
           ", \"types\": [" + types + "], \"ulp\": " + std::to_string(f.ulp) + ", \"source\": " + Quoted(f.source) +
           ", \"certainty\": " + Quoted(f.certainty) + "}";
  }
  return out + "]";
}

// {"figures": [{"name": ..., "value": ..., ...}...], "vector": [{"op": ..., ...}...]}
std::string TimingText() {
  const auto fields = [](std::initializer_list<std::pair<const char*, std::string>> all) {
    std::string out;
    for (const auto& [key, text] : all) out += std::string(out.empty() ? "{" : ", ") + Quoted(key) + ": " + text;
    return out + "}";
  };
  std::string figures, vector;
  for (const engine::TimingFigure& f : engine::TimingFigures()) {
    figures += (figures.empty() ? "" : ", ") + fields({{"name", Quoted(f.name)},
                                                       {"value", std::to_string(f.value)},
                                                       {"unit", Quoted(f.unit)},
                                                       {"what", Quoted(f.what)},
                                                       {"source", Quoted(f.source)},
                                                       {"certainty", Quoted(f.certainty)}});
  }
  for (const engine::VectorCostFigure& f : engine::VectorCostFigures()) {
    vector += (vector.empty() ? "" : ", ") + fields({{"op", Quoted(f.op)},
                                                     {"types", Quoted(f.types)},
                                                     {"latency", std::to_string(f.latency)},
                                                     {"interval", std::to_string(f.interval)},
                                                     {"port", Quoted(f.port)},
                                                     {"source", Quoted(f.source)},
                                                     {"certainty", Quoted(f.certainty)}});
  }
  return "{\"figures\": [" + figures + "], \"vector\": [" + vector + "]}";
}

tf::Array<tf::String> Ops() {
  tf::Array<tf::String> names;
  for (const std::string& name : engine::SupportedOps()) names.push_back(tf::String(name));
  return names;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tf::reflection::GlobalDef()
      .def("tilelang_pto.sim_launch",
           [](tf::Bytes program, tf::String function, tf::Array<tf::Any> args, int64_t grid, int64_t host_threads,
              int64_t max_steps, int64_t perturbation, tf::String mad_order, int64_t seed, tf::String text) {
             return tf::String(Launch(program, std::string(function), args, grid, host_threads, max_steps, perturbation,
                                      std::string(mad_order), seed, std::string(text)));
           })
      .def("tilelang_pto.sim_accuracy", [] { return tf::String(AccuracyText()); })
      .def("tilelang_pto.sim_timing_figures", [] { return tf::String(TimingText()); })
      .def("tilelang_pto.sim_ops", [] { return Ops(); });
}

}  // namespace
}  // namespace pto
