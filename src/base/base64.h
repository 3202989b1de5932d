/* Base64. */
#ifndef STEWARD_BASE_BASE64_H
#define STEWARD_BASE_BASE64_H

#include "base/str.h"

#include <sys/types.h>

/* Unpadded base64url text of n bytes, NUL-terminated (BASE64_TEXT(n) bytes with the NUL). */
#define BASE64_TEXT(n) (((n)*4 + 2) / 3 + 1)
void base64url_encode(const void *bytes, size_t n, char *ret_text);

/* Decodes either alphabet, padded or not. Returns the number of bytes; negative when the text is not base64 or decodes
 * to more than `max` bytes. */
must_check ssize_t base64_decode(struct str text, void *ret_bytes, size_t max);

#endif
