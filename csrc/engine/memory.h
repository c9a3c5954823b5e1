// Pointer values and the memories of a core.
//
// A GM pointer value is (tensor number << 48) | (signed 48-bit byte offset); tensor numbers start at 1. A pointer made
// from an integer that points into no tensor has kByAddress as number and the host address as offset. A UB pointer
// value is the byte address. A stack pointer value is (buffer number << 48) | byte offset within one thread's copy of
// the buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace pto::engine {

constexpr int kOffsetBits = 48;
constexpr uint64_t kOffsetMask = (UINT64_C(1) << kOffsetBits) - 1;

constexpr uint32_t kByAddress = 0xFFFF;
constexpr uint32_t kNoAddress = 0xFFFE;  // made from an integer of more than 48 bits; the offset is its lower part
constexpr uint32_t kMostTensors = 0xFFFD;

inline int64_t OffsetOf(uint64_t pointer) { return static_cast<int64_t>(pointer << 16) >> 16; }
inline uint32_t ObjectOf(uint64_t pointer) { return static_cast<uint32_t>(pointer >> kOffsetBits); }
inline uint64_t AddBytes(uint64_t pointer, int64_t bytes) {
  return (pointer & ~kOffsetMask) | ((pointer + static_cast<uint64_t>(bytes)) & kOffsetMask);
}
inline uint64_t MakePointer(uint32_t object, int64_t offset) {
  return (static_cast<uint64_t>(object) << kOffsetBits) | (static_cast<uint64_t>(offset) & kOffsetMask);
}

struct Tensor {
  uint8_t* data = nullptr;
  int64_t extent = -1;  // -1: not known
};

// Storage of one alloc_buffer. Element-major: element e of thread t is at base + (e * threads + t) * element_bytes.
struct StackBuffer {
  uint8_t* base = nullptr;
  int64_t count = 0;
  int32_t element_bytes = 0;
  int32_t threads = 0;  // 0: not bound yet (a buffer of the scalar unit, bound at its first access)
};

// 256-byte aligned byte storage that grows and never shrinks.
class AlignedBytes {
 public:
  uint8_t* Ensure(size_t bytes) {
    if (bytes > size_) {
      storage_.reset(new uint8_t[bytes + 256]);
      data_ = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(storage_.get()) + 255) & ~uintptr_t{255});
      size_ = bytes;
    }
    return data_;
  }
  uint8_t* data() { return data_; }

 private:
  std::unique_ptr<uint8_t[]> storage_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pto::engine
