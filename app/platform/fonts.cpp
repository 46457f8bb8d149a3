#include "app/platform/fonts.hpp"

namespace app::platform {
LoadedFonts load_fonts(float) { return {}; }
}  // namespace app::platform
