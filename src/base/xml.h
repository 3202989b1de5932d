/* Writing XML. */
#ifndef STEWARD_BASE_XML_H
#define STEWARD_BASE_XML_H

#include "base/buf.h"

/* Text of an element or attribute, escaped. Control characters cannot stand in XML at all: they become spaces. */
void xml_text(struct buf *b, struct str text);
/* <name>text</name> */
void xml_element(struct buf *b, const char *name, struct str text);
/* Inside of a tag:  name="value" with a space before it. */
void xml_attribute(struct buf *b, const char *name, struct str value);

#endif
