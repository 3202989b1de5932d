/* XML of servers, which are not trusted: of bounded depth, without document types. No copy of a text is left behind. */
#ifndef STEWARD_OBJECTS_XML_H
#define STEWARD_OBJECTS_XML_H

#include "base/buf.h"

#define OBJECT_WORDS 200

/* Called at the end of each element: its depth (1: the root), the name around it, its own name and its text. */
typedef int object_xml_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text);
/* -EPROTO: it is not one whole element. Otherwise 0, or what `end` has ended it with. */
must_check int object_xml_walk(struct str xml, object_xml_end *end, void *ctx);

/* What a server says about a failure. */
struct object_fault {
	char code[64], message[OBJECT_WORDS];
};
/* <Error>: its code and message, cut to their buffers; both empty when it is no error. */
void object_xml_fault(struct str xml, struct object_fault *ret_fault);

/* The text of `name` right below the root element `root`. -EPROTO: there is none, or no such root. */
must_check int object_xml_field(struct str xml, const char *root, const char *name, struct buf *ret_text);

/* The same of `name` in an element `around`, at whichever depth; the first. */
must_check int object_xml_find(struct str xml, const char *root, const char *around, const char *name,
                               struct buf *ret_text);

#endif
