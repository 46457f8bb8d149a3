#version 330 core
// One heatmap: the colour of each cell, and the mark that says what the colour cannot.
//
// A texel is a cell, or a block of cells when the matrix is larger than its picture: the colour of its number and, in the
// alpha channel, its marks, a sum of the bits below. Pixel (0, 0) is the top left one.
uniform sampler2D texels;
uniform vec2 corner;      // of the picture, in texels
uniform vec2 pitch;       // pixels a texel
uniform vec3 ground, hatch, hatch_ground, bad, light_ink, dark_ink;
uniform bool gaps;
uniform bool has_cross;
uniform ivec2 cross_at;   // in texels
uniform float ground_share;  // of the cells off the cross
uniform int phase;        // of the hatches
uniform float scale;      // of the display
out vec4 pixel_colour;

// The same numbers as in core/base/cells.hpp; the last one as in app/screen/picture.hpp.
const int HIDDEN = 1, DROPPED = 2, MINUS_INFINITY = 4, NOT_A_NUMBER = 8, ABOVE = 16, BELOW = 32, ZERO = 64, LIGHT_INK = 128;

// How much of a pixel is covered by what ends at that distance from its centre.
float coverage(float distance) { return clamp(0.5 - distance, 0.0, 1.0); }

bool on_hatch() {
  // Half a pixel away from where a stripe begins or ends, so that no rounding matters.
  float along = gl_FragCoord.x + gl_FragCoord.y - 0.5 + float(phase);
  return mod(along, round(6.0 * scale)) < round(scale);
}

// From here on p is a point in the cell and size the cell's size, both in pixels.
float corner_to_corner(vec2 p, vec2 size) {
  vec2 along = normalize(size);
  vec2 q = p - size / 2.0;
  float nearest = min(abs(q.x * along.y - q.y * along.x), abs(q.x * along.y + q.y * along.x));
  return coverage(nearest - 0.6 * scale);
}

// What is hidden as well has its 0 beside the cross.
float dropped_mark(vec2 p, vec2 size, bool beside) {
  vec2 q = p - floor(vec2(beside && size.x >= 26.0 * scale ? size.x * 0.33 : size.x / 2.0, size.y / 2.0));
  if (min(size.x, size.y) < 14.0 * scale) {
    // Too small for a cross: half of one, drawn more quietly as there may be thousands.
    return min(size.x, size.y) < 2.0 ? 0.0 : 0.45 * coverage(abs(q.x - q.y) - 0.4);
  }
  float line = min(abs(q.x - q.y), abs(q.x + q.y)) / sqrt(2.0) - 0.75 * scale;
  float end = max(abs(q.x), abs(q.y)) - 4.0 * scale;
  return coverage(max(line, end));
}

float cut_corner(vec2 p, vec2 size, bool top) {
  float smallest = min(size.x, size.y);
  if (smallest < 2.0) return 0.0;
  float side = clamp(0.45 * smallest, 1.5, 9.0 * scale);
  float from_corner = (size.x - p.x) + (top ? p.y : size.y - p.y);
  // Of very small cells there may be thousands, whose colours are to be seen.
  return (smallest < 5.0 ? 0.35 : 1.0) * coverage((from_corner - side) / sqrt(2.0));
}

// An exact zero where no number can say so.
float zero_dot(vec2 p, vec2 size) {
  float smallest = min(size.x, size.y);
  if (smallest < 4.0) return 0.0;
  return 0.55 * coverage(length(p - size / 2.0) - clamp(0.12 * smallest, 0.7, 2.0 * scale));
}

vec3 cell_colour(vec4 texel, vec2 p, vec2 size) {
  vec3 colour = texel.rgb;
  int marks = int(texel.a * 255.0 + 0.5);
  if ((marks & NOT_A_NUMBER) != 0) return mix(hatch_ground, bad, corner_to_corner(p, size));
  if ((marks & MINUS_INFINITY) != 0) return on_hatch() ? hatch : hatch_ground;

  vec3 ink = (marks & LIGHT_INK) != 0 ? light_ink : dark_ink;
  if ((marks & HIDDEN) != 0 && on_hatch()) colour = mix(colour, ink, 0.18);
  if ((marks & DROPPED) != 0) colour = mix(colour, ink, dropped_mark(p, size, (marks & HIDDEN) != 0));
  if ((marks & ZERO) != 0) colour = mix(colour, ink, zero_dot(p, size));
  if ((marks & (ABOVE | BELOW)) != 0) colour = mix(colour, ink, cut_corner(p, size, (marks & ABOVE) != 0));
  return colour;
}

void main() {
  ivec2 texel = ivec2(floor(corner + gl_FragCoord.xy / pitch));
  pixel_colour = vec4(ground, 1.0);
  if (any(lessThan(texel, ivec2(0))) || any(greaterThanEqual(texel, textureSize(texels, 0)))) return;

  // The pixels whose centres lie in the texel.
  vec2 first = ceil((vec2(texel) - corner) * pitch - 0.5);
  vec2 size = ceil((vec2(texel + 1) - corner) * pitch - 0.5) - first;
  vec2 p = gl_FragCoord.xy - first;
  if (gaps) size -= 1.0;
  if (any(greaterThan(p, size))) return;

  vec3 colour = cell_colour(texelFetch(texels, texel, 0), p, size);
  if (has_cross && texel.x != cross_at.x && texel.y != cross_at.y) colour = mix(colour, ground, ground_share);
  pixel_colour = vec4(colour, 1.0);
}
