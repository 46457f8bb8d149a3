#pragma once

#include <chrono>
#include <stdexcept>
#include <thread>

#include "app/session/live_trace.hpp"
#include "app/session/store.hpp"
#include "app/session/whole_reading.hpp"

namespace support {

/// Follows, and waits until the trace is of this model.
inline void catch_up(app::Jobs& jobs, app::LiveTrace& live, const core::attention::Model& model,
                     std::size_t sequence = 0) {
  for (live.follow(model, sequence); live.is_behind(); live.follow(model, sequence)) jobs.finish();
}

/// Waits until whatever is being read or written has been taken in.
inline void finish_reading(app::Store& store) {
  for (; store.is_reading() || store.is_writing(); std::this_thread::yield()) store.update();
}

/// Carries out a command, and waits until what it reads or writes has been taken in.
inline void carry_out(app::Store& store, const app::Command& command) {
  store.dispatch(command);
  finish_reading(store);
}

/// Waits until the comparison and the laboratory's first masks are there.
inline void finish_working(app::Store& store) {
  const auto awaits_masks = [&] {
    const app::Laboratory* shown = store.laboratory();
    return store.view().look.tab == app::Tab::laboratory &&
           !(shown && shown->version == store.live().version());
  };
  const auto reads = [&] { return store.pending().whole && store.pending().reading->is_busy(); };
  for (store.update(); store.comparing().is_busy() || awaits_masks() || reads(); store.update())
    std::this_thread::yield();
}

/// Does frames, or whatever stands for them, until nothing has been read or worked out for three of them:
/// what is read may ask for more. Throws when that takes longer than a minute.
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

/// The same with the store's own frames.
inline void settle(app::Store& store) {
  settle(store, [&store] {
    store.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

}  // namespace support
