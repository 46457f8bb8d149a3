#include "app/writing.hpp"

#include <exception>
#include <utility>

namespace app {

Writing::~Writing() {
  worker_.wait();
  for (; !waiting_.empty(); worker_.wait()) begin();
}

void Writing::add(std::filesystem::path path, Write write) {
  waiting_.push_back({std::move(path), std::move(write)});
  if (!worker_.is_busy()) begin();
}

void Writing::go_on() {
  std::exception_ptr problem;
  try {
    worker_.deliver();
  } catch (...) {
    problem = std::current_exception();
  }
  if (!waiting_.empty() && !worker_.is_busy()) begin();
  if (problem) std::rethrow_exception(problem);
}

void Writing::stop() {
  if (progress_ && worker_.is_busy()) progress_->cancel();
}

double Writing::seconds() const {
  return worker_.is_busy() ? std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count()
                           : 0;
}

void Writing::begin() {
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  path_ = std::move(next.path);
  since_ = std::chrono::steady_clock::now();
  progress_ = std::make_shared<core::formats::Progress>();
  worker_.start([write = std::move(next.write), progress = progress_](const std::stop_token&) {
    return write(*progress);
  });
}

}  // namespace app
