// What the host code of a kernel calls when an argument is refused: tilelang_pto.refuse_argument(text, values...).
//
// The text has a place for each value, rendered by its kind: {number}, {type} (a TVM-FFI type index), {device} (a
// DLPack device type), and {dtype}, which takes three values (code, bits and lanes of a DLPack type).
#include <dlpack/dlpack.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

namespace pto::ffi {
namespace {

namespace tf = ::tvm::ffi;

// As a Python user calls it.
std::string TypeName(int32_t index) {
  switch (index) {
    case tf::TypeIndex::kTVMFFINone:
      return "None";
    case tf::TypeIndex::kTVMFFIBool:
      return "a bool";
    case tf::TypeIndex::kTVMFFIInt:
      return "an int";
    case tf::TypeIndex::kTVMFFIFloat:
      return "a float";
    case tf::TypeIndex::kTVMFFIRawStr:
    case tf::TypeIndex::kTVMFFISmallStr:
    case tf::TypeIndex::kTVMFFIStr:
      return "a string";
    case tf::TypeIndex::kTVMFFIByteArrayPtr:
    case tf::TypeIndex::kTVMFFISmallBytes:
    case tf::TypeIndex::kTVMFFIBytes:
      return "bytes";
    case tf::TypeIndex::kTVMFFIDataType:
      return "a dtype";
    case tf::TypeIndex::kTVMFFIDevice:
      return "a device";
    case tf::TypeIndex::kTVMFFIOpaquePtr:
      return "a pointer";
    case tf::TypeIndex::kTVMFFIDLTensorPtr:
    case tf::TypeIndex::kTVMFFITensor:
      return "a tensor";
    case tf::TypeIndex::kTVMFFIFunction:
      return "a function";
    case tf::TypeIndex::kTVMFFIArray:
      return "a list or tuple";
    case tf::TypeIndex::kTVMFFIMap:
      return "a dict";
    case tf::TypeIndex::kTVMFFIOpaquePyObject:
      return "a Python object of another type";
    default:
      return "a value of type " + tf::TypeIndexToTypeKey(index);
  }
}

std::string DeviceName(int64_t type) {
  switch (type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda";
    case kDLExtDev:
      return "ext_dev (an NPU)";
    default:
      return "device type " + std::to_string(type);
  }
}

void RefuseArgument(tf::PackedArgs args, tf::Any*) {
  const std::string text = args[0].cast<tf::String>();
  int next = 1;
  auto take = [&]() -> int64_t { return next < args.size() ? args[next++].cast<int64_t>() : 0; };
  std::string message;
  for (size_t at = 0; at < text.size();) {
    auto is = [&](const std::string& place) { return text.compare(at, place.size(), place) == 0; };
    if (is("{number}")) {
      message += std::to_string(take());
      at += 8;
    } else if (is("{type}")) {
      message += TypeName(static_cast<int32_t>(take()));
      at += 6;
    } else if (is("{device}")) {
      message += DeviceName(take());
      at += 8;
    } else if (is("{dtype}")) {
      const auto code = static_cast<uint8_t>(take());
      const auto bits = static_cast<uint8_t>(take());
      const auto lanes = static_cast<uint16_t>(take());
      message += std::string(tf::DLDataTypeToString(DLDataType{code, bits, lanes}));
      at += 7;
    } else {
      message += text[at++];
    }
  }
  throw tf::Error("RuntimeError", message, "");
}

TVM_FFI_STATIC_INIT_BLOCK() { tf::reflection::GlobalDef().def_packed("tilelang_pto.refuse_argument", RefuseArgument); }

}  // namespace
}  // namespace pto::ffi
