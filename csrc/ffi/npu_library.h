// The shared library of a module compiled for an NPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pto::ffi {

// One exported launch function: (packed arguments, their size, number of blocks, stream) -> status.
using LaunchFn = int32_t (*)(const void* packed, size_t bytes, int64_t grid, void* stream);

class NpuLibrary {
 public:
  // Loads the library from its bytes; no file stays behind. It is never closed: its device code stays registered with
  // the vendor's runtime, and kernels of it may still be running. Throws std::runtime_error with the loader's reason.
  explicit NpuLibrary(const std::string& bytes);

  // Null when the library has no launch function for the kernel.
  LaunchFn Find(const std::string& kernel) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace pto::ffi
