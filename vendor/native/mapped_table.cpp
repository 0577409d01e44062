// A table of f32 numbers that stays in its file: only the pages of rows that are read get into memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "mlx/c/error.h"
#include "mlx/c/private/mlx.h"
#include "mlx/mlx.h"

namespace mx = mlx::core;

namespace {

std::runtime_error failure(const char *path, const std::string &what) {
  return std::runtime_error(std::string(path) + " " + what);
}

/// MLX's allocator keeps the size of a buffer in front of its elements, and looks there now and then.
constexpr size_t kBufferHead = sizeof(size_t);

/// Maps [begin - kBufferHead, begin + bytes) of the file, and what precedes it on its page.
class Mapping {
public:
  Mapping(const char *path, size_t begin, size_t bytes) {
    if (begin < kBufferHead) throw failure(path, "has no header in front of its tensors");
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) throw failure(path, std::string("cannot be opened: ") + strerror(errno));
    struct stat status;
    const bool known = fstat(file, &status) == 0;
    if (!known || begin + bytes > static_cast<size_t>(status.st_size)) {
      close(file);
      throw failure(path, "ends before its tensors do");
    }
    const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t page = (begin - kBufferHead) / page_bytes * page_bytes;
    length_ = begin + bytes - page;
    // Private: an operation that takes over the memory of its input writes to a copy of the page.
    start_ = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file,
                  static_cast<off_t>(page));
    const int reason = errno;
    close(file);
    if (start_ == MAP_FAILED)
      throw failure(path, std::string("cannot be mapped: ") + strerror(reason));
    values_ = static_cast<char *>(start_) + (begin - page);
  }

  char *values() const { return values_; }
  void unmap() const { munmap(start_, length_); }

private:
  void *start_;
  size_t length_;
  char *values_;
};

mx::array mappedTable(const char *path, size_t begin, int rows, int width) {
  const Mapping mapping(path, begin, sizeof(float) * rows * width);
  // MLX's own way to wrap foreign memory copies it on the CPU.
  return mx::array(mx::allocator::Buffer(mapping.values() - kBufferHead),
                   {rows, width}, mx::float32,
                   [mapping](mx::allocator::Buffer) { mapping.unmap(); });
}

} // namespace

extern "C" {

// [rows, width] from `begin` on, a multiple of 4 and at least 8.
int mlxcel_map_table(mlx_array *res, const char *path, size_t begin, int rows, int width) {
  try {
    mlx_array_set_(*res, mappedTable(path, begin, rows, width));
  } catch (std::exception &error) {
    mlx_error("%s", error.what());
    return 1;
  }
  return 0;
}
}
