# Builds the libraries of the page for WebAssembly from their sources, in the root that scripts/web makes.
#   sh web_libraries.sh SOURCES PREFIX
set -eu
sources=$1 prefix=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
export CFLAGS="-O2 -msimd128 -fwasm-exceptions -sSUPPORT_LONGJMP=wasm" SOURCE_DATE_EPOCH=1
export CXXFLAGS="$CFLAGS" LDFLAGS="$CFLAGS" EM_PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
work=/tmp/web_libraries
rm -rf "$work" "$prefix"
mkdir -p "$work" "$prefix/include" "$prefix/lib"
cd "$work"
for archive in "$sources"/*.tar.*; do tar -xf "$archive"; done

# library FOLDER [OPTION...]: builds and installs one by its own CMakeLists.txt.
library() {
  folder=$1
  shift
  emcmake cmake -G Ninja -S "$folder" -B "$folder.build" -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_FIND_ROOT_PATH="$prefix" -DBUILD_SHARED_LIBS=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
  cmake --build "$folder.build" -j 2
  cmake --install "$folder.build"
}

# zlib's builds its examples and a shared library, which WebAssembly has not.
(cd zlib-*/ && emcc $CFLAGS -c adler32.c compress.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c uncompr.c zutil.c &&
  emar crs "$prefix/lib/libz.a" ./*.o && cp zlib.h zconf.h "$prefix/include")
mkdir "$prefix/lib/pkgconfig"
printf 'Name: zlib\nDescription: zlib\nVersion: 1.3.1\nCflags: -I%s/include\nLibs: -L%s/lib -lz\n' "$prefix" "$prefix" >"$prefix/lib/pkgconfig/zlib.pc"
library "$(echo pcre2-*/)" -DPCRE2_BUILD_TESTS=OFF -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_SUPPORT_UNICODE=ON
library "$(echo utf8proc-*/)"
library "$(echo libzip-*/)" -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF \
  -DENABLE_LZMA=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
# TrueType alone, which is what DejaVu is.
modules='autofit|tt_driver|psnames|sfnt|ft_smooth_renderer|ft_raster1'
sed -i -E "/^FT_USE_MODULE/{/, ($modules)_/!d}" freetype-*/include/freetype/config/ftmodule.h
library "$(echo freetype-*/)" -DFT_DISABLE_BZIP2=ON -DFT_DISABLE_PNG=ON -DFT_DISABLE_HARFBUZZ=ON -DFT_DISABLE_BROTLI=ON
cp -r "$prefix"/include/freetype2/. "$prefix/include"  # where all look

cd imgui_bundle-*/external/imgui/imgui
for source in imgui imgui_draw imgui_stacklayout imgui_tables imgui_widgets backends/imgui_impl_opengl3 misc/freetype/imgui_freetype; do
  em++ $CXXFLAGS -std=c++20 -I. -I"$prefix/include/freetype2" -include "$here/../app/web/gl_state.h" -DIMGUI_ENABLE_FREETYPE \
    -DIMGUI_DISABLE_DEMO_WINDOWS -DIMGUI_IMPL_OPENGL_ES3 -c $source.cpp
done
emar crs "$prefix/lib/libimgui.a" ./*.o
cp "$prefix/lib/libimgui.a" "$prefix/lib/libstb.a"  # which is within
mkdir -p "$prefix/include/imgui/backends"
cp ./*.h misc/freetype/imgui_freetype.h "$prefix/include/imgui"
cp backends/imgui_impl_opengl3.h "$prefix/include/imgui/backends"
rm -rf "$work"
