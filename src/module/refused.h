/* Shapes that are refused, from the setting steward.refused: words of hexadecimal digits, each a fingerprint, and words
 * FINGERPRINT=QUERYID for query ids that are known to be of a shape. */
#ifndef STEWARD_MODULE_REFUSED_H
#define STEWARD_MODULE_REFUSED_H

#include <postgres.h>

/* Makes the setting, which only the configuration file can change. When the library is loaded. */
void refused_define(void);
bool refused_any(void);
/* The shape for which a statement with that query id and shape is refused; 0: it is not. */
uint64 refused_shape(uint64 queryid, uint64 shape);

#endif
