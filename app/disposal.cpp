#include "app/disposal.hpp"

namespace app {

Disposal::Disposal() : thread_([queue = queue_](const std::stop_token& ends) { queue->run(ends); }) {}

Disposal::~Disposal() {
  const std::lock_guard lock(queue_->mutex);
  queue_->is_open = false;
}

void Disposal::wait() {
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [this] { return queue_->things.empty() && !queue_->is_busy; });
}

void Disposal::Queue::put(std::unique_ptr<Held> thing) {
  const std::lock_guard lock(mutex);
  if (!is_open) return;
  things.push_back(std::move(thing));
  changed.notify_all();
}

void Disposal::Queue::run(const std::stop_token& ends) {
  std::unique_lock lock(mutex);
  while (changed.wait(lock, ends, [this] { return !things.empty(); })) {
    auto going = std::exchange(things, {});
    is_busy = true;
    lock.unlock();
    going.clear();
    lock.lock();
    is_busy = false;
    changed.notify_all();
  }
}

}  // namespace app
