// The runtime module of kind "pto": PTODSL text, the program recorded from it, how its functions are called, and for an
// NPU the library with the compiled kernels.
//
// TileLang's host code calls a device function as
//   (pointers..., scalars..., launch parameters..., extent in bytes of every pointer...)
// with pointers and scalars in the order of the device function's parameters.
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/float16.h"
#include "engine/report.h"
#include "ffi/npu_call.h"
#include "ffi/npu_library.h"
#include "ffi/session.h"
#include "ffi/settings.h"

namespace pto::ffi {
namespace {

namespace tf = ::tvm::ffi;
using engine::DType;

constexpr const char* kSimulationError = "tilelang_pto.SimulationError";
constexpr const char* kFindingError = "tilelang_pto.FindingError";
constexpr const char* kModuleError = "tilelang_pto.RuntimeModuleError";
constexpr const char* kConfigurationError = "tilelang_pto.ConfigurationError";

// The kind is the name under which the Python side has registered the exception class.
[[noreturn]] void Throw(const char* kind, std::string message) { throw tf::Error(kind, std::move(message), ""); }

[[noreturn]] void BadArgument(const std::string& kernel, const std::string& message, const std::string& advice = "") {
  Throw(kModuleError, message + "\n  in kernel " + kernel + (advice.empty() ? "" : "\n  instead: " + advice));
}

// How the host calls one device function.
struct Entry {
  std::string name;
  const engine::Function* function = nullptr;
  std::vector<std::string> launch;  // names of the launch parameters, in order
  size_t n_pointers = 0;
  std::vector<size_t> offsets;   // of every argument in the pack of a launch on an NPU
  size_t pack_bytes = 0;         // size of that pack
  LaunchFn launch_fn = nullptr;  // on an NPU

  size_t Arity() const { return function->parameters.size() + launch.size() + n_pointers; }
};

void* AsPointer(const Entry& e, const engine::Parameter& p, const tf::AnyView& value) {
  switch (value.type_index()) {
    case tf::TypeIndex::kTVMFFINone:
      return nullptr;
    case tf::TypeIndex::kTVMFFIOpaquePtr:
      return value.cast<void*>();
    case tf::TypeIndex::kTVMFFIDLTensorPtr:
    case tf::TypeIndex::kTVMFFITensor: {
      const DLTensor* tensor = value.cast<DLTensor*>();
      return static_cast<char*>(tensor->data) + tensor->byte_offset;
    }
    default:
      BadArgument(e.name, "argument " + p.name + " must be a pointer, not " + value.GetTypeKey());
  }
}

int64_t AsInteger(const Entry& e, const std::string& name, const tf::AnyView& value) {
  if (std::optional<int64_t> number = value.try_cast<int64_t>()) return *number;
  BadArgument(e.name, "argument " + name + " must be an integer, not " + value.GetTypeKey());
}

uint64_t IntegerBits(const Entry& e, const engine::Parameter& p, const tf::AnyView& value) {
  const int64_t number = AsInteger(e, p.name, value);
  if (p.type.dtype == DType::kI1) return number != 0;
  const int bits = 8 * engine::ByteSize(p.type.dtype);
  if (bits == 64) return static_cast<uint64_t>(number);
  // Signed and unsigned spellings of the same bits are both fine.
  if (number < -(INT64_C(1) << (bits - 1)) || number >= (INT64_C(1) << bits)) {
    BadArgument(e.name,
                "argument " + p.name + " = " + std::to_string(number) + " does not fit " + engine::Name(p.type.dtype));
  }
  return static_cast<uint64_t>(number) & ((UINT64_C(1) << bits) - 1);
}

uint64_t ScalarBits(const Entry& e, const engine::Parameter& p, const tf::AnyView& value) {
  if (!engine::IsFloat(p.type.dtype)) return IntegerBits(e, p, value);
  const std::optional<double> number = value.try_cast<double>();
  if (!number) BadArgument(e.name, "argument " + p.name + " must be a number, not " + value.GetTypeKey());
  const float x = static_cast<float>(*number);
  switch (p.type.dtype) {
    case DType::kF16:
      return engine::FromFloat<engine::F16>(x).bits;
    case DType::kBF16:
      return engine::FromFloat<engine::BF16>(x).bits;
    default:
      return engine::BitCast<uint32_t>(x);
  }
}

class PtoModuleObj : public tf::ModuleObj {
 public:
  PtoModuleObj(std::string text, std::string program, std::string abi, std::string library)
      : text_(std::move(text)), bytes_(std::move(program)), abi_(std::move(abi)), library_bytes_(std::move(library)) {
    try {
      program_ = engine::Program::Parse(bytes_.data(), bytes_.size());
    } catch (const engine::Error& error) {
      Throw(kModuleError, error.what());
    }
    ReadAbi();
    if (device_ == kNpu) OpenLibrary();
  }

  const char* kind() const final { return "pto"; }

  int GetPropertyMask() const final { return tf::Module::kRunnable | tf::Module::kBinarySerializable; }

  tf::Optional<tf::Function> GetFunction(const tf::String& name) final {
    for (const Entry& entry : entries_) {
      if (name != entry.name) continue;
      // The function keeps the module alive.
      const tf::Module self = tf::GetRef<tf::Module>(this);
      if (device_ == kNpu) {
        return tf::Function::FromPacked(
            [self, this, &entry](tf::PackedArgs args, tf::Any*) { CallAndClose(entry, args); });
      }
      return tf::Function::FromPacked([self, this, &entry](tf::PackedArgs args, tf::Any*) { Call(entry, args); });
    }
    return std::nullopt;
  }

  tf::Bytes SaveToBytes() const final {
    std::string out = kMagic;
    for (const std::string* part : {&text_, &bytes_, &abi_, &library_bytes_}) {
      uint64_t size = part->size();
      for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(size >> (8 * i)));
      out += *part;
    }
    return tf::Bytes(std::move(out));
  }

  static tf::Module LoadFromBytes(const tf::Bytes& bytes) {
    const std::string data(bytes.data(), bytes.size());
    const std::string magic = kMagic;
    if (data.compare(0, magic.size(), magic) != 0) {
      Throw(kModuleError,
            "the saved pto module is of another version of tilelang-pto\n  instead: compile the kernel again");
    }
    std::string parts[4];
    size_t at = magic.size();
    for (std::string& part : parts) {
      uint64_t size = 0;
      if (data.size() - at >= 8) {
        for (int i = 0; i < 8; ++i) size |= static_cast<uint64_t>(static_cast<uint8_t>(data[at + i])) << (8 * i);
        at += 8;
      } else {
        Throw(kModuleError, "the saved pto module is cut short");
      }
      if (size > data.size() - at) Throw(kModuleError, "the saved pto module is cut short");
      part = data.substr(at, size);
      at += size;
    }
    return Create(std::move(parts[0]), std::move(parts[1]), std::move(parts[2]), std::move(parts[3]));
  }

  tf::String InspectSource(const tf::String& format) const final { return text_; }

  static tf::Module Create(std::string text, std::string program, std::string abi, std::string library) {
    return tf::Module(
        tf::make_object<PtoModuleObj>(std::move(text), std::move(program), std::move(abi), std::move(library)));
  }

 private:
  static constexpr const char* kMagic = "PTOM3\n";
  static constexpr const char* kNpu = "npu";

  // {"device": "sim", "max_grid": ..., "status": {"0": ..., ...},
  //  "kernels": [{"name": ..., "parameters": [{"name": ..., "kind": "pointer", "offset": 0}...],
  //               "pack_bytes": ..., "launch": [...]}]}
  void ReadAbi() {
    const tf::json::Object root = tf::json::Parse(tf::String(abi_)).cast<tf::json::Object>();
    device_ = root["device"].cast<tf::String>();
    max_grid_ = root["max_grid"].cast<int64_t>();
    for (const auto& [code, meaning] : root["status"].cast<tf::json::Object>()) {
      statuses_.emplace(code.cast<tf::String>(), meaning.cast<tf::String>());
    }
    for (const tf::Any& item : root["kernels"].cast<tf::json::Array>()) {
      const tf::json::Object kernel = item.cast<tf::json::Object>();
      Entry entry;
      entry.name = kernel["name"].cast<tf::String>();
      entry.function = program_->Find(entry.name);
      if (entry.function == nullptr) Throw(kModuleError, "the PTODSL text does not define kernel " + entry.name);
      for (const tf::Any& launch : kernel["launch"].cast<tf::json::Array>()) {
        entry.launch.push_back(launch.cast<tf::String>());
      }
      CheckParameters(&entry, kernel["parameters"].cast<tf::json::Array>());
      entry.pack_bytes = static_cast<size_t>(kernel["pack_bytes"].cast<int64_t>());
      entries_.push_back(std::move(entry));
    }
  }

  static void CheckParameters(Entry* entry, const tf::json::Array& declared) {
    const auto& recorded = entry->function->parameters;
    if (declared.size() != recorded.size()) {
      BadArgument(entry->name, "TIR has " + std::to_string(declared.size()) + " parameters and the PTODSL text " +
                                   std::to_string(recorded.size()));
    }
    for (size_t i = 0; i < recorded.size(); ++i) {
      const tf::json::Object parameter = declared[i].cast<tf::json::Object>();
      const bool pointer = parameter["kind"].cast<tf::String>() == "pointer";
      if (pointer != (recorded[i].type.kind == engine::Kind::kPointer)) {
        BadArgument(entry->name, "parameter " + recorded[i].name + " is a pointer on one side of the call only");
      }
      entry->n_pointers += pointer;
      entry->offsets.push_back(static_cast<size_t>(parameter["offset"].cast<int64_t>()));
    }
  }

  void OpenLibrary() {
    try {
      library_ = std::make_unique<NpuLibrary>(library_bytes_);
    } catch (const std::runtime_error& error) {
      Throw(kModuleError, std::string("the library of the kernels cannot be loaded: ") + error.what() +
                              "\n  instead: source set_env.sh of the CANN toolkit the kernels were built with");
    }
    for (Entry& entry : entries_) {
      entry.launch_fn = library_->Find(entry.name);
      if (!entry.launch_fn) BadArgument(entry.name, "the library has no launch function for this kernel");
    }
  }

  // A call that fails on an NPU is the last one of its host function.
  void CallAndClose(const Entry& entry, tf::PackedArgs args) const {
    try {
      Call(entry, args);
    } catch (...) {
      CloseNpuCall();
      throw;
    }
  }

  void Call(const Entry& entry, tf::PackedArgs args) const {
    if (static_cast<size_t>(args.size()) != entry.Arity()) {
      BadArgument(entry.name,
                  "expected " + std::to_string(entry.Arity()) + " arguments, got " + std::to_string(args.size()));
    }
    const auto& parameters = entry.function->parameters;
    engine::LaunchOptions options;
    try {
      options.host_threads = HostThreads();
      options.perturbation = Perturbation();
      options.interleaving_seed = InterleavingSeed();
      options.mad_order = MadOrder();
    } catch (const BadSetting& bad) {
      Throw(kConfigurationError, bad.message + "\n  instead: " + bad.advice);
    }
    const int64_t grid = ReadLaunch(entry, args, static_cast<int>(parameters.size()), options);
    std::vector<engine::Arg> values;
    values.reserve(parameters.size());
    int next_extent = static_cast<int>(parameters.size() + entry.launch.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      const engine::Parameter& p = parameters[i];
      const tf::AnyView value = args[static_cast<int>(i)];
      if (p.type.kind != engine::Kind::kPointer) {
        values.push_back(engine::Arg::Scalar(ScalarBits(entry, p, value)));
        continue;
      }
      void* data = AsPointer(entry, p, value);
      const int64_t extent = AsInteger(entry, "extent of " + p.name, args[next_extent++]);
      if (extent < -1)
        BadArgument(entry.name, "argument " + p.name + " has the negative extent " + std::to_string(extent));
      if (data == nullptr && extent != 0) BadArgument(entry.name, "argument " + p.name + " is a null pointer");
      values.push_back(engine::Arg::Pointer(data, extent));
    }
    if (grid == 0) return;
    if (entry.launch_fn) {
      LaunchOnNpu(entry, values, grid);
      return;
    }
    try {
      LaunchInSession(*program_, {entry.name, program_->source_file(), text_}, values, grid, options, nullptr);
    } catch (const BadSetting& bad) {
      Throw(kConfigurationError, bad.message + "\n  instead: " + bad.advice);
    } catch (const engine::FindingError& error) {
      Throw(kFindingError, Located(error));
    } catch (const engine::Error& error) {
      Throw(kSimulationError, Located(error));
    }
  }

  // Asynchronous, on the stream that is current for this thread on the device of the tensors. Memory that the
  // framework's allocator frees before the kernel has ended is handed out again in the order of that stream only.
  void LaunchOnNpu(const Entry& entry, const std::vector<engine::Arg>& values, int64_t grid) const {
    std::vector<uint64_t> pack(entry.pack_bytes / 8);
    uint8_t* const bytes = reinterpret_cast<uint8_t*>(pack.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const engine::Arg& value = values[i];
      if (value.kind == engine::Arg::kPointer) {
        std::memcpy(bytes + entry.offsets[i], &value.data, sizeof(value.data));
      } else {
        const int size = engine::ByteSize(entry.function->parameters[i].type.dtype);
        std::memcpy(bytes + entry.offsets[i], &value.bits, static_cast<size_t>(size));
      }
    }
    const int32_t device = LaunchDevice();
    void* const stream = LaunchStream(device);
    int32_t status = 0;
    try {
      const NpuGuard guard(device);
      status = entry.launch_fn(pack.data(), entry.pack_bytes, grid, stream);
    } catch (const std::runtime_error& error) {
      BadArgument(entry.name, error.what());
    }
    if (status != 0) BadArgument(entry.name, "the launch failed: " + StatusText(status));
  }

  // What a status of a launch function other than 0 means, in the words of the launch stub.
  std::string StatusText(int32_t status) const {
    const auto found = statuses_.find(std::to_string(status));
    return found == statuses_.end() ? "unknown status " + std::to_string(status) : found->second;
  }

  // The text of a run-time error with the line of PTODSL it points at: the file it names is not on disk.
  std::string Located(const engine::Error& error) const {
    std::string text = error.what();
    const std::string line = SourceLine(error.place.line);
    const std::string place = "\n  in " + error.place.file + ":" + std::to_string(error.place.line);
    const size_t at = text.find(place);
    if (!line.empty() && at != std::string::npos) text.insert(at + place.size(), "\n  in " + line);
    return text;
  }

  // Line `number` of the text, from 1, without the space around it.
  std::string SourceLine(int number) const {
    size_t begin = 0;
    for (; number > 1 && begin != std::string::npos; --number) {
      begin = text_.find('\n', begin);
      if (begin != std::string::npos) ++begin;
    }
    if (number < 1 || begin == std::string::npos) return "";
    const std::string line = text_.substr(begin, text_.find('\n', begin) - begin);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) return "";
    return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
  }

  // The number of blocks.
  int64_t ReadLaunch(const Entry& entry, tf::PackedArgs args, int first, const engine::LaunchOptions& options) const {
    int64_t grid = 1;
    for (size_t i = 0; i < entry.launch.size(); ++i) {
      const std::string& name = entry.launch[i];
      const int64_t value = AsInteger(entry, name, args[first + static_cast<int>(i)]);
      if (value < 0) BadArgument(entry.name, "launch parameter " + name + " is negative: " + std::to_string(value));
      if (name.compare(0, 9, "blockIdx.") == 0) {
        if (value > max_grid_ || grid * value > max_grid_) {
          BadArgument(entry.name,
                      "launch parameter " + name + " = " + std::to_string(value) +
                          " is too large: a launch has at most " + std::to_string(max_grid_) + " blocks",
                      "launch fewer blocks and let each do more");
        }
        grid *= value;
      } else if (name == "tirx.use_dyn_shared_memory") {
        if (value > options.ub_bytes) {
          BadArgument(entry.name, "needs " + std::to_string(value) + " bytes of unified buffer, a vector core has " +
                                      std::to_string(options.ub_bytes));
        }
      } else {
        BadArgument(entry.name, "unknown launch parameter " + name);
      }
    }
    return grid;
  }

  std::string text_;
  std::string bytes_;
  std::string abi_;
  std::string library_bytes_;
  std::string device_;
  int64_t max_grid_ = 0;                         // most blocks of one launch
  std::map<std::string, std::string> statuses_;  // what a launch function returns, in words
  std::unique_ptr<NpuLibrary> library_;
  std::shared_ptr<const engine::Program> program_;
  std::vector<Entry> entries_;
};

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = ::tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tilelang_pto.module_create",
           [](const tf::String& text, const tf::Bytes& program, const tf::String& abi, const tf::Bytes& library) {
             return PtoModuleObj::Create(text, std::string(program.data(), program.size()), abi,
                                         std::string(library.data(), library.size()));
           })
      .def("ffi.Module.load_from_bytes.pto", &PtoModuleObj::LoadFromBytes);
}

}  // namespace
}  // namespace pto::ffi
