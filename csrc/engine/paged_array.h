// An array whose parts come into being when they are first used, so that a launch pays only for what it accesses.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace pto::engine {

template <class T, size_t kPart>
class PagedArray {
 public:
  explicit PagedArray(size_t size) : parts_((size + kPart - 1) / kPart) {}

  T& operator[](size_t i) {
    std::unique_ptr<T[]>& part = parts_[i / kPart];
    if (__builtin_expect(!part, 0)) part = std::make_unique<T[]>(kPart);
    return part[i % kPart];
  }
  // All elements are as at the beginning again.
  void Clear() {
    for (std::unique_ptr<T[]>& part : parts_) part.reset();
  }

 private:
  std::vector<std::unique_ptr<T[]>> parts_;
};

}  // namespace pto::engine
