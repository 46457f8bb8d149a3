// One heatmap with pixels from app/screen/heatmap_image.cpp; off the cross it is blended with the background.
// Pixel (0, 0) is the top left one.
precision highp float;  // which OpenGL ES wants said
precision highp int;
uniform sampler2D pixels;
uniform vec3 ground;
uniform float ground_share;
uniform ivec4 cross_at;  // left, top, right and bottom of the cell
out vec4 color;

void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  bool in_column = at.x >= cross_at.x && at.x < cross_at.z, in_row = at.y >= cross_at.y && at.y < cross_at.w;
  vec3 pixel = texelFetch(pixels, at, 0).rgb;
  color = vec4(in_column || in_row ? pixel : mix(pixel, ground, ground_share), 1.0);
}
