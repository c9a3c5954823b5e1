// What the call of a host function on an NPU has to know at its launches: the device of the tensors, its current
// stream, and the workspaces that live until the last launch.
//
// The host function opens a call (tilelang_pto.npu_enter), asks for workspaces (tilelang_pto.npu_workspace), launches
// its kernels, and closes the call (tilelang_pto.npu_leave). A launch that fails closes it too.
#pragma once

#include <cstdint>

namespace pto::ffi {

// Makes an NPU the current one of this thread and the one before it current again. Does nothing where the vendor's
// runtime is not loaded. Throws std::runtime_error when the device cannot be made current.
class NpuGuard {
 public:
  explicit NpuGuard(int32_t device);
  ~NpuGuard();
  NpuGuard(const NpuGuard&) = delete;
  NpuGuard& operator=(const NpuGuard&) = delete;

 private:
  static constexpr int32_t kNone = -1;
  int32_t previous_ = kNone;
};

// The NPU of the open call, that of this thread where none is open, 0 where the vendor's runtime is not loaded.
int32_t LaunchDevice();

// The stream that is current for this thread on an NPU: the one TVM-FFI was given, else that of torch_npu. Null where
// neither knows one.
void* LaunchStream(int32_t device);

// Ends the open call, if there is one, and gives its workspaces back.
void CloseNpuCall();

}  // namespace pto::ffi
