#pragma once

#include <array>
#include <iterator>
#include <optional>
#include <string_view>

#include "app/screen/keys.hpp"
#include "app/ui/landmarks.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/ui_input.hpp"

namespace support {

/// Random user input in a window; a mouse button keeps its state until an input sets it.
class RandomUser {
 public:
  RandomUser(unsigned seed, ImVec2 window) : random_(seed), window_(window) {}

  InputFrame next(const app::Landmarks& landmarks) {
    InputFrame input;
    switch (below(random_, 8)) {
      case 0:
        input.mouse = pointer_ = {coordinate(window_.x), coordinate(window_.y)};
        break;
      case 1:
        input.mouse = pointer_ = any(landmarks);
        break;
      case 2:
        input.mouse = pointer_ = {pointer_.x + step(), pointer_.y + step()};
        break;
      case 3:
        input.left = coin(random_);
        break;
      case 4:
        input.right = below(random_, 4) == 0, input.left = coin(random_);
        break;
      case 5:
        input.wheel = static_cast<float>(below(random_, 7)) - 3;
        break;
      case 6:
        press(input);
        break;
      default:
        input.text = texts[below(random_, texts.size())];
    }
    return input;
  }

 private:
  static constexpr std::array texts{"1", "-", ".5", "e", "7", "99999", "ü", "nan", "c", "[", " "};

  float coordinate(float length) {
    return static_cast<float>(below(random_, static_cast<std::size_t>(length)));
  }
  ImVec2 any(const app::Landmarks& landmarks) {
    auto it = landmarks.all().begin();
    std::advance(it, below(random_, landmarks.all().size()));
    return it->second.center();
  }
  float step() { return static_cast<float>(below(random_, 41)) - 20; }
  void press(InputFrame& input) {
    using app::Key;
    if (held_) {
      input.released = held_;
      held_.reset();
      return;
    }
    constexpr std::size_t first = std::size_t(Key::escape), last = std::size_t(Key::space);
    constexpr std::string_view letters = "acdetvxyz129";  // none that ends the program or writes a file
    held_ = coin(random_) ? static_cast<Key>(first + below(random_, last - first + 1))
                          : *app::platform::key_of_character(letters[below(random_, letters.size())]);
    input.ctrl = below(random_, 4) == 0, input.shift = below(random_, 4) == 0,
    input.alt = below(random_, 8) == 0;
    input.key = app::KeyPress{*held_, input.ctrl, input.shift, input.alt};
  }

  Random random_;
  ImVec2 window_, pointer_{0, 0};
  std::optional<app::Key> held_;
};

}  // namespace support
