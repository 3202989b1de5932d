/* CRC-32C (Castagnoli's polynomial), by the processor's own instruction where it has one. */
#ifndef STEWARD_BASE_CRC32C_H
#define STEWARD_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes in pieces: begin with 0, give each piece's result to the next. */
uint32_t crc32c(uint32_t sum, const void *bytes, size_t n);
/* The same without the instruction. */
uint32_t crc32c_plain(uint32_t sum, const void *bytes, size_t n);

#endif
