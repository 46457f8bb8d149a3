#pragma once

#include <cstddef>
#include <memory>

namespace core::attention::fast {

/// Doubles that begin at a cache line, with any content; large ones lie in large pages where the system has
/// them.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);

  double* data() { return numbers_.get(); }
  const double* data() const { return numbers_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(double* numbers) const;
  };
  std::unique_ptr<double, Free> numbers_;
  std::size_t size_ = 0;
};

}  // namespace core::attention::fast
