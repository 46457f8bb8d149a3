#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/drawn_texts.hpp"
#include "tests/support/program.hpp"
#include "tests/support/waiting.hpp"

namespace support {

/// A window with fonts whose frames go on until nothing is left to read or compute.
struct SettledWindow : testing::Test {
  gui::Program ui;

  explicit SettledWindow(ImVec2 size) : ui(size) { ui.screen.has_fonts = true; }
  void settle() {
    support::settle(ui.store, [&] { ui.run(1); });
    ui.run(2);
  }
  void dispatch(const app::Command& command) {
    ui.store.dispatch(command);
    settle();
  }
  void press(const std::string& landmark) {
    ui.click(landmark);
    settle();
  }
  /// Returns all drawn texts, a line each.
  std::string words() {
    ui.run(1);
    std::string all;
    TextReader reader;
    for (const DrawnText& text : reader.texts()) all += text.text + "\n";
    return all;
  }
};

}  // namespace support
