// OpenGL ES, where libepoxy would load OpenGL.
#pragma once

#include <GLES3/gl3.h>
