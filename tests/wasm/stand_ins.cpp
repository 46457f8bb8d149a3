// Stand-ins for the functions of utf8proc and libzip that core calls, for Emscripten: Debian has only native
// builds of these libraries. Archives (.npz, PyTorch's) are refused with an error.
#include <utf8proc.h>
#include <zip.h>

#include <wchar.h>

extern "C" {

utf8proc_ssize_t utf8proc_iterate(const utf8proc_uint8_t* text, utf8proc_ssize_t size,
                                  utf8proc_int32_t* point) {
  *point = -1;
  if (size <= 0) return 0;
  const int first = text[0], length = first < 0x80   ? 1
                                      : first < 0xC2 ? 0
                                      : first < 0xE0 ? 2
                                      : first < 0xF0 ? 3
                                      : first < 0xF5 ? 4
                                                     : 0;
  if (length == 0 || length > size) return UTF8PROC_ERROR_INVALIDUTF8;
  utf8proc_int32_t value = length == 1 ? first : first & (0xFF >> (length + 1));
  for (int k = 1; k < length; ++k) {
    if ((text[k] & 0xC0) != 0x80) return UTF8PROC_ERROR_INVALIDUTF8;
    value = value << 6 | (text[k] & 0x3F);
  }
  const bool is_too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (is_too_long || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    return UTF8PROC_ERROR_INVALIDUTF8;
  *point = value;
  return length;
}

utf8proc_ssize_t utf8proc_encode_char(utf8proc_int32_t point, utf8proc_uint8_t* bytes) {
  const int length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (int k = length - 1; k > 0; --k, point >>= 6)
    bytes[k] = static_cast<utf8proc_uint8_t>(0x80 | (point & 0x3F));
  bytes[0] = static_cast<utf8proc_uint8_t>(length == 1 ? point : (0xF00 >> length & 0xFF) | point);
  return length;
}

int utf8proc_charwidth(utf8proc_int32_t point) {
  return ::wcwidth(static_cast<wchar_t>(point));
}

zip_t* zip_open(const char*, int, int* error) {
  *error = ZIP_ER_OPNOTSUPP;
  return nullptr;
}
void zip_error_init_with_code(zip_error_t*, int) {}
const char* zip_error_strerror(zip_error_t*) {
  return "this build reads no archives";
}
void zip_error_fini(zip_error_t*) {}

// Never called, because no archive can be opened.
int zip_error_code_zip(const zip_error_t*) {
  return ZIP_ER_OPNOTSUPP;
}
zip_error_t* zip_get_error(zip_t*) {
  return nullptr;
}
zip_error_t* zip_file_get_error(zip_file_t*) {
  return nullptr;
}
zip_int64_t zip_get_num_entries(zip_t*, zip_flags_t) {
  return 0;
}
int zip_stat_index(zip_t*, zip_uint64_t, zip_flags_t, zip_stat_t*) {
  return -1;
}
zip_file_t* zip_fopen_index(zip_t*, zip_uint64_t, zip_flags_t) {
  return nullptr;
}
zip_int64_t zip_fread(zip_file_t*, void*, zip_uint64_t) {
  return -1;
}
zip_int8_t zip_fseek(zip_file_t*, zip_int64_t, int) {
  return -1;
}
int zip_fclose(zip_file_t*) {
  return 0;
}
void zip_discard(zip_t*) {}
}
