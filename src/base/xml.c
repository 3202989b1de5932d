/* Writing XML: only what the formats that we give out need. */
#include "base/xml.h"

void xml_text(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		switch (c) {
		case '&': buf_z(b, "&amp;"); break;
		case '<': buf_z(b, "&lt;"); break;
		case '>': buf_z(b, "&gt;"); break;
		case '"': buf_z(b, "&quot;"); break;
		default: buf_c(b, (char)(c < 0x20 ? ' ' : c));
		}
	}
}

void xml_element(struct buf *b, const char *name, struct str text)
{
	buf_printf(b, "<%s>", name);
	xml_text(b, text);
	buf_printf(b, "</%s>", name);
}

void xml_attribute(struct buf *b, const char *name, struct str value)
{
	buf_printf(b, " %s=\"", name);
	xml_text(b, value);
	buf_c(b, '"');
}
