// Host launch stubs of mix_kernel, barrier_kernel.
//
//
// Each function takes the packed arguments of one kernel, the number of blocks and the stream, and gives 0 or a code:
//   0  the kernel is launched, or there was nothing to do (no blocks)
//   1  no arguments were given
//   2  the packed arguments have another size than the kernel's: the caller has another signature
//   3  the number of blocks is negative or too large
//   4  check build only: no function to call is set
//
// With TILELANG_PTO_STUB_CHECK defined, any C++17 compiler builds this file: a launch becomes a call through a pointer.
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifndef TILELANG_PTO_STUB_CHECK
#ifndef AICORE
#define AICORE [aicore]
#endif
#endif

#define TILELANG_PTO_EXPORT extern "C" __attribute__((visibility("default")))

// ---- mix_kernel ----

namespace {

struct alignas(8) mix_kernel_args {
  int32_t n_;  // n: int32
  const void* x_;  // x: const bfloat16*
  float scale_;  // scale: float32
  float* out_;  // out: float32*
  uint8_t flag_;  // flag: bool
  int64_t seed_;  // seed: int64
};
static_assert(sizeof(mix_kernel_args) == 48);
static_assert(offsetof(mix_kernel_args, n_) == 0 && sizeof(int32_t) == 4);
static_assert(offsetof(mix_kernel_args, x_) == 8 && sizeof(const void*) == 8);
static_assert(offsetof(mix_kernel_args, scale_) == 16 && sizeof(float) == 4);
static_assert(offsetof(mix_kernel_args, out_) == 24 && sizeof(float*) == 8);
static_assert(offsetof(mix_kernel_args, flag_) == 32 && sizeof(uint8_t) == 1);
static_assert(offsetof(mix_kernel_args, seed_) == 40 && sizeof(int64_t) == 8);

}  // namespace

#ifdef TILELANG_PTO_STUB_CHECK
TILELANG_PTO_EXPORT void (*tilelang_pto_check_mix_kernel)(uint32_t grid, void* stream, int32_t, const void*, float, float*, uint8_t, int64_t);
void (*tilelang_pto_check_mix_kernel)(uint32_t grid, void* stream, int32_t, const void*, float, float*, uint8_t, int64_t) = nullptr;
#else
extern "C" __global__ AICORE void mix_kernel(int32_t n_, __gm__ const uint8_t* x_, float scale_, __gm__ float* out_, uint8_t flag_, int64_t seed_);
#endif

TILELANG_PTO_EXPORT int32_t tilelang_pto_launch_mix_kernel(const void* packed, size_t bytes, int64_t grid, void* stream) {
  if (bytes != 48) return 2;
  if (grid < 0 || grid > 65535) return 3;
  if (grid == 0) return 0;
  if (packed == nullptr) return 1;
  mix_kernel_args args;
  std::memcpy(&args, packed, sizeof(args));
#ifdef TILELANG_PTO_STUB_CHECK
  if (tilelang_pto_check_mix_kernel == nullptr) return 4;
  tilelang_pto_check_mix_kernel(static_cast<uint32_t>(grid), stream, args.n_, args.x_, args.scale_, args.out_, args.flag_, args.seed_);
#else
  mix_kernel<<<static_cast<uint32_t>(grid), nullptr, stream>>>(args.n_, (__gm__ const uint8_t*)args.x_, args.scale_, (__gm__ float*)args.out_, args.flag_, args.seed_);
#endif
  return 0;
}

// ---- barrier_kernel ----

#ifdef TILELANG_PTO_STUB_CHECK
TILELANG_PTO_EXPORT void (*tilelang_pto_check_barrier_kernel)(uint32_t grid, void* stream);
void (*tilelang_pto_check_barrier_kernel)(uint32_t grid, void* stream) = nullptr;
#else
extern "C" __global__ AICORE void barrier_kernel();
#endif

TILELANG_PTO_EXPORT int32_t tilelang_pto_launch_barrier_kernel(const void* packed, size_t bytes, int64_t grid, void* stream) {
  if (bytes != 0) return 2;
  if (grid < 0 || grid > 65535) return 3;
  if (grid == 0) return 0;
  static_cast<void>(packed);
#ifdef TILELANG_PTO_STUB_CHECK
  if (tilelang_pto_check_barrier_kernel == nullptr) return 4;
  tilelang_pto_check_barrier_kernel(static_cast<uint32_t>(grid), stream);
#else
  barrier_kernel<<<static_cast<uint32_t>(grid), nullptr, stream>>>();
#endif
  return 0;
}
