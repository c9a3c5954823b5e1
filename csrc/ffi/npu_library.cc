#include "ffi/npu_library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace pto::ffi {

namespace {

// A file with a name of its own that goes away again. The name matters: the loader takes a path it has seen before for
// the library it has loaded from there, whatever the path leads to by now.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* const folder = std::getenv("TMPDIR");
    path_ = std::string(folder && *folder ? folder : "/tmp") + "/tilelang-pto-kernels-XXXXXX";
    file_ = mkostemp(path_.data(), O_CLOEXEC);
    if (file_ < 0) throw std::runtime_error(path_ + ": " + std::strerror(errno));
  }
  ~TemporaryFile() {
    close(file_);
    unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void Write(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t n = write(file_, bytes.data() + at, bytes.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw std::runtime_error(path_ + ": " + std::strerror(errno));
      at += static_cast<size_t>(n);
    }
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace

NpuLibrary::NpuLibrary(const std::string& bytes) {
  TemporaryFile file;
  file.Write(bytes);
  handle_ = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_) return;
  const char* const reason = dlerror();
  throw std::runtime_error(reason ? reason : "unknown reason");
}

LaunchFn NpuLibrary::Find(const std::string& kernel) const {
  return reinterpret_cast<LaunchFn>(dlsym(handle_, ("tilelang_pto_launch_" + kernel).c_str()));
}

}  // namespace pto::ffi
