/* What is told about invoices: letters to people, and the call to the operator's payment service. Both go through the
 * outbox, in the write of what they tell about. */
#include "billing/billing.h"

#include "identity/grants.h"
#include "outbox/outbox.h"
#include "outbox/vendors.h"

#include <errno.h>

#define PEOPLE_MAX 50
#define BATCH 100

struct letter {
	struct tx *tx;
	struct arena *arena;
	struct str org_id, subject, text;
	json_t *told;
};

static int letter_send(struct letter *l, struct str address)
{
	if (!address.n || !memchr(address.p, '@', address.n) || json_has(l->told, address) ||
	    json_array_size(l->told) >= PEOPLE_MAX)
		return 0;
	json_add_str(l->told, address);
	return outbox_mail(l->tx, l->arena, l->org_id, address, l->subject, l->text);
}

static int letter_send_user(struct letter *l, struct str user_id)
{
	struct doc user;
	int r = tx_get(l->tx, l->arena, "user", user_id, &user);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return letter_send(l, json_field(doc_json(l->arena, user.body), "username"));
}

int notice_mail(struct tx *tx, struct arena *a, struct str org_id, struct str subject, struct str text)
{
	struct letter l = {tx, a, org_id, subject, text, json_keep(a, json_array())};
	role_mask wanted = role_bit("ORG_OWNER") | role_bit("ORG_BILLING_ADMIN");
	struct grant_row *rows;
	size_t count = BATCH;
	json_t *billing;
	int r = billing_get(tx, a, org_id, &billing);
	if (r == 0)
		r = letter_send(&l, json_field(billing, "email"));
	for (int64_t at = 0; r == 0 && count == BATCH; at += BATCH) {
		r = grants_in(tx, a, GRANTEE_USER, true, org_id, at, BATCH, &rows, &count);
		for (size_t i = 0; r == 0 && i < count; i++)
			if (rows[i].roles & wanted)
				r = letter_send_user(&l, rows[i].id);
	}
	return r;
}

int notice_hook(struct tx *tx, struct arena *a, const struct invoice *i, const json_t *billing)
{
	static const char *const fields[] = {"amountBilledCents", "endDate",       "id",           "orgId", "startDate",
	                                     "statusName",        "salesTaxCents", "subtotalCents"};
	json_t *body = json_new(a);
	json_copy_fields(body, i->body, fields, sizeof fields / sizeof *fields);
	json_put_str(body, "currency", json_field(i->state, "currency"));
	json_put_str(body, "paymentMethod", json_field(billing, "method"));
	return outbox_add(tx, a,
	                  &(struct outbox_message){.tenant = i->doc.parent,
	                                           .receiver = STR("billing"),
	                                           .keeper = i->doc.parent,
	                                           .key = arena_printf(a, "invoice/%.*s", STR_ARG(i->doc.id)),
	                                           .kind = "BILLING",
	                                           .about = STR("billing"),
	                                           .content = billing_request(a, body)});
}
