#pragma once

#include <chrono>
#include <stdexcept>
#include <thread>

#include "app/session/full_model_reading.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/store.hpp"

namespace support {

/// Updates a live trace until it belongs to the model.
inline void catch_up(app::Jobs& jobs, app::LiveTrace& live, const core::attention::Model& model,
                     std::size_t sequence = 0) {
  for (live.follow(model, sequence); live.is_behind(); live.follow(model, sequence)) jobs.finish();
}

/// Updates a store until all reading and writing has finished.
inline void finish_reading(app::Store& store) {
  for (; store.is_reading() || store.is_writing(); std::this_thread::yield()) store.update();
}

/// Dispatches a command and waits until its reading and writing has finished.
inline void carry_out(app::Store& store, const app::Command& command) {
  store.dispatch(command);
  finish_reading(store);
}

/// Updates a store until the comparison, the laboratory's first masks and the whole model are computed.
inline void finish_working(app::Store& store) {
  const auto awaits_masks = [&] {
    const app::Laboratory* shown = store.laboratory();
    return store.view().look.tab == app::Tab::laboratory &&
           !(shown && shown->version == store.live().version());
  };
  const auto reads = [&] { return store.pending().full_model && store.pending().reading->is_busy(); };
  for (store.update();
       store.live_comparison().is_busy() || awaits_masks() || reads() || store.learning().is_busy();
       store.update())
    std::this_thread::yield();
}

/// Calls frame() until three calls in a row leave nothing to read or compute, because results may start more
/// work. Throws std::runtime_error after a minute.
template <class Frame>
void settle(const app::Store& store, Frame frame) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (int quiet = 0; quiet < 3; ++quiet) {
    frame();
    if (store.is_reading() || store.is_working()) quiet = -1;
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("still reading or working after a minute");
  }
}

/// Does the same with the store's update().
inline void settle(app::Store& store) {
  settle(store, [&store] {
    store.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

}  // namespace support
