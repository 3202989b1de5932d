/* The head of the answer to a call that was passed on to another host. (That of the call itself: hosts_adopt().) */
#ifndef STEWARD_HOSTS_HEAD_H
#define STEWARD_HOSTS_HEAD_H

#include "base/str.h"

struct host_head {
	int status;    /* 0: none yet, or none that can be */
	size_t length; /* SIZE_MAX: not known */
};

enum host_line { HOST_LINE_NOTHING, HOST_LINE_FIELD, HOST_LINE_END };
/* The next line of the head, with whatever ends it. A field's name and value are parts of the line. After the end of an
 * interim head (1xx) another one follows. */
enum host_line host_head_take(struct host_head *h, struct str line, struct str *ret_name, struct str *ret_value);

/* The name, if such a field is passed on to the caller; NULL: it is not. Only some are, and none whose value would end
 * a header. Static. */
const char *host_head_passes(struct str name, struct str value);

#endif
