/* Events. The body is final JSON text, like every stored document; the store adds the hash that chains it to the one
 * before. */
#include "gate/audit.h"

#include "base/clock.h"
#include "base/id.h"

#include <stdio.h>

void audit_type(struct call *c, const char *type)
{
	c->event.type = type;
	c->event.type_chosen = true;
}

void audit_field(struct call *c, const char *name, struct str value)
{
	if (c->event.field_count == EVENT_FIELDS_MAX)
		return;
	c->event.fields[c->event.field_count].name = name;
	c->event.fields[c->event.field_count].value = value;
	c->event.field_count++;
}

void audit_scope(struct call *c, struct str org_id, struct str group_id)
{
	c->event.org_id = org_id;
	c->event.group_id = group_id;
}

/* The form that the schema's pattern takes: IPv6 written out in full. */
static void address_write(struct buf *b, const struct ip *ip)
{
	char text[IP_TEXT];
	if (ip_is_v4(ip)) {
		ip_format(ip, text);
		json_z(b, text);
		return;
	}
	json_sep(b);
	buf_c(b, '"');
	for (int i = 0; i < 16; i += 2)
		buf_printf(b, "%s%x", i ? ":" : "", ip->b[i] << 8 | ip->b[i + 1]);
	buf_c(b, '"');
}

static void text_field(struct buf *b, const char *name, struct str value)
{
	if (!value.n)
		return;
	json_key(b, name);
	json_str(b, value);
}

static void caller_write(struct buf *b, const struct principal *p)
{
	if (!p)
		return;
	if (p->kind == PRINCIPAL_USER) {
		text_field(b, "userId", str_of(p->id));
		text_field(b, "username", str_of(p->name));
	} else {
		/* A service account has no field of its own in the schemas: its client id stands where a public key would. */
		text_field(b, "apiKeyId", str_of(p->id));
		text_field(b, "publicKey", str_of(p->name));
	}
}

int audit_write(struct call *c)
{
	const char *type = c->event.type_chosen ? c->event.type : c->op->event;
	if (!type)
		return 0;
	struct id id = id_new();
	struct buf b = {0};
	char now[CLOCK_TEXT];
	struct event e = {.id = id_str(&id), .type = str_of(type), .created_ms = clock_now_ms(),
			  .org_id = c->event.org_id.n ? c->event.org_id : c->org.id,
			  .group_id = c->event.group_id.n ? c->event.group_id : c->group.id};
	clock_format(e.created_ms, now);
	json_open(&b, '{');
	text_field(&b, "id", e.id);
	json_key(&b, "created");
	json_z(&b, now);
	json_key(&b, "eventTypeName");
	json_z(&b, type);
	text_field(&b, "orgId", e.org_id);
	text_field(&b, "groupId", e.group_id);
	json_key(&b, "isGlobalAdmin");
	json_bool(&b, false);
	json_key(&b, "remoteAddress");
	address_write(&b, &c->request->peer);
	caller_write(&b, c->caller);
	for (size_t i = 0; i < c->event.field_count; i++)
		text_field(&b, c->event.fields[i].name, c->event.fields[i].value);
	json_close(&b, '}');
	e.body = buf_view(&b);
	int result = tx_event_add(c->tx, &e);
	buf_free(&b);
	return result;
}
