/* The answers of Azure's Blob service. */
#ifndef STEWARD_OBJECTS_AZURE_XML_H
#define STEWARD_OBJECTS_AZURE_XML_H

#include "objects/request.h"

/* One page of a list: see struct object_dialect. */
must_check int azure_xml_page(struct str xml, object_entry_visit *visit, void *ctx, struct buf *ret_token);

#endif
