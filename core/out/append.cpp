#include "core/out/append.hpp"

namespace core::figures {
namespace {

struct Mover {
  Point by;

  void operator()(Point& p) const { p.x += by.x, p.y += by.y; }
  void operator()(Area& a) const { a.x += by.x, a.y += by.y; }
  void operator()(Box& box) const { (*this)(box.area); }
  void operator()(Image& image) const { (*this)(image.area); }
  void operator()(Text& text) const { (*this)(text.at); }
  void operator()(Hatch& hatch) const {
    for (Area& area : hatch.areas) (*this)(area);
  }
  void operator()(Lines& lines) const {
    for (auto& ends : lines.ends)
      for (Point& p : ends) (*this)(p);
  }
  void operator()(Triangles& triangles) const {
    for (auto& corners : triangles.corners)
      for (Point& p : corners) (*this)(p);
  }
};

}  // namespace

void append(DisplayList& figure, const DisplayList& part, Point by) {
  for (Item item : part.items) {
    std::visit(Mover{by}, item);
    figure.items.push_back(std::move(item));
  }
}

}  // namespace core::figures
