#include "ffi/npu_call.h"

#include <dlfcn.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace pto::ffi {
namespace {

namespace tf = ::tvm::ffi;

constexpr const char* kModuleError = "tilelang_pto.RuntimeModuleError";
// Python: the stream torch_npu holds current for a device, 0 where torch_npu is not in use.
constexpr const char* kTorchStream = "tilelang_pto.torch_npu_stream";

struct OpenCall {
  bool open = false;
  std::string kernel;
  int32_t device = 0;
  // Of the framework's allocator, which hands freed memory out again in the order of the current stream: they may be
  // given back while the kernels are still waiting to run.
  std::vector<tf::Tensor> workspaces;
};

OpenCall& Current() {
  static thread_local OpenCall call;
  return call;
}

[[noreturn]] void Refuse(const std::string& message, const std::string& advice) {
  const std::string where = "\n  in kernel " + Current().kernel;
  CloseNpuCall();
  throw tf::Error(kModuleError, message + where + "\n  instead: " + advice, "");
}

// A function of the vendor's runtime. torch_npu has loaded that where there is one; a search among all symbols would
// find TileLang's own stand-in for it, which fails without one. Looked for again until it is found.
template <typename Function>
Function FromRuntime(const char* name) {
  void* const runtime = dlopen("libascendcl.so", RTLD_NOW | RTLD_NOLOAD);
  return runtime ? reinterpret_cast<Function>(dlsym(runtime, name)) : nullptr;
}

using GetDevice = int32_t (*)(int32_t*);
using SetDevice = int32_t (*)(int32_t);

GetDevice AclGetDevice() {
  static thread_local GetDevice found = nullptr;
  if (!found) found = FromRuntime<GetDevice>("aclrtGetDevice");
  return found;
}

SetDevice AclSetDevice() {
  static thread_local SetDevice found = nullptr;
  if (!found) found = FromRuntime<SetDevice>("aclrtSetDevice");
  return found;
}

void Enter(const tf::String& kernel, int64_t device) {
  CloseNpuCall();
  OpenCall& call = Current();
  call.open = true;
  call.kernel = kernel;
  call.device = static_cast<int32_t>(device);
}

// Memory of the framework on the device of the call, at least one byte; its address goes to the value of `cell`.
void Workspace(int64_t bytes, void* cell) {
  OpenCall& call = Current();
  const std::string needed = "a workspace of " + std::to_string(bytes) + " bytes is needed";
  if (bytes < 0) Refuse(needed + ": an extent is too large", "use smaller tensors");
  if (TVMFFIEnvGetDLPackManagedTensorAllocator() == nullptr) {
    Refuse(needed + ", and no framework is there to allocate it", "pass the tensors as torch tensors");
  }
  const int64_t shape[] = {std::max<int64_t>(bytes, 1)};
  const DLDataType dtype{kDLUInt, 8, 1};
  const DLDevice device{kDLExtDev, call.device};
  try {
    call.workspaces.push_back(tf::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, tf::ShapeView(shape, 1), dtype, device));
  } catch (const tf::Error&) {
    CloseNpuCall();
    throw;
  }
  const DLTensor* const made = call.workspaces.back().GetDLTensorPtr();
  static_cast<TVMFFIAny*>(cell)->v_ptr = static_cast<char*>(made->data) + made->byte_offset;
}

}  // namespace

NpuGuard::NpuGuard(int32_t device) {
  const GetDevice get = AclGetDevice();
  const SetDevice set = AclSetDevice();
  if (!get || !set) return;
  int32_t before = kNone;
  if (get(&before) != 0) before = kNone;  // a thread that has used no device yet
  if (before == device) return;
  if (const int32_t status = set(device)) {
    throw std::runtime_error("NPU " + std::to_string(device) + " cannot be made current: aclrtSetDevice gives " +
                             std::to_string(status));
  }
  previous_ = before;
}

NpuGuard::~NpuGuard() {
  if (previous_ != kNone) AclSetDevice()(previous_);
}

int32_t LaunchDevice() {
  if (Current().open) return Current().device;
  const GetDevice get = AclGetDevice();
  int32_t device = 0;
  return get && get(&device) == 0 ? device : 0;
}

void* LaunchStream(int32_t device) {
  if (void* const stream = TVMFFIEnvGetStream(kDLExtDev, device)) return stream;
  const tf::Optional<tf::Function> torch = tf::Function::GetGlobal(kTorchStream);
  return torch ? reinterpret_cast<void*>((*torch)(device).cast<int64_t>()) : nullptr;
}

void CloseNpuCall() {
  OpenCall& call = Current();
  call.open = false;
  call.kernel.clear();
  call.workspaces.clear();
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = ::tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tilelang_pto.npu_enter", &Enter)
      .def("tilelang_pto.npu_workspace", &Workspace)
      .def("tilelang_pto.npu_leave", &CloseNpuCall);
}

}  // namespace pto::ffi
