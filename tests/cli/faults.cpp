// Preloaded before the C library by LD_PRELOAD: makes one call of a function fail, or it and all later ones.
//   ATTNSCOPE_FAULT="NAME NUMBER ERROR once|on" ATTNSCOPE_FAULT_LOG=FILE, which is created at the failure
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> n_calls{0};

bool fails(const char* name) {
  const char* fault = std::getenv("ATTNSCOPE_FAULT");
  char wanted[16], times[8];
  long number = 0;
  int error = 0;
  if (!fault || std::sscanf(fault, "%15s %ld %d %7s", wanted, &number, &error, times) != 4) return false;
  if (std::strcmp(wanted, name) != 0) return false;
  const long call = n_calls.fetch_add(1);
  if (call < number || (call > number && std::strcmp(times, "on") != 0)) return false;
  if (const char* log = std::getenv("ATTNSCOPE_FAULT_LOG")) {
    const long file = ::syscall(SYS_openat, AT_FDCWD, log, O_CREAT | O_WRONLY, 0600);
    ::syscall(SYS_close, file);
  }
  errno = error;
  return true;
}

bool is_regular(int descriptor) {
  struct stat about;
  return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && descriptor > 2;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (is_regular(descriptor) && fails("write")) {
    const int error = errno;
    // A disk that becomes full accepts some of the bytes first.
    if (count > 1) real<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, count / 2);
    errno = error;
    return -1;
  }
  return real<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, count);
}

int fsync(int descriptor) {
  return fails("fsync") ? -1 : real<int(int)>("fsync")(descriptor);
}

int rename(const char* from, const char* to) {
  return fails("rename") ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) {
  return fails("mkdir") ? -1 : real<int(const char*, mode_t)>("mkdir")(path, mode);
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & O_CREAT) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
    if (fails("create")) return -1;
  }
  return real<int(const char*, int, ...)>("open")(path, flags, mode);
}

}  // extern "C"
