#version 330 core
// The parts of the picture that are drawn, two triangles each; an instance is a part.
const int MOST_PARTS = 48;       // as in app/screen/part.hpp
uniform vec4 parts[MOST_PARTS];  // left, top, right, bottom: from −1 to 1
void main() {
  vec4 part = parts[gl_InstanceID];
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(mix(part.xy, part.zw, corner), 0.0, 1.0);
}
