/* What ends the links of a person: one small write, however many there are. */
#include "identity/links.h"

#include "base/id.h"
#include "base/json.h"

#include <errno.h>

#define STAMP_KIND "link_stamp"

int links_stamp(struct tx *tx, struct arena *a, struct str user_id, struct str *ret_stamp)
{
	struct doc d;
	int r = tx_get(tx, a, STAMP_KIND, user_id, &d);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_stamp = r == 0 ? json_field(doc_json(a, d.body), "stamp") : STR("");
	return 0;
}

/* Begun downloads look again when the generation of identities is another. */
int links_end(struct tx *tx, struct arena *a, struct str user_id)
{
	struct doc d;
	json_t *body = json_new(a);
	json_put_str(body, "stamp", id_make(a));
	tx_touch_identity(tx);
	int r = tx_get(tx, a, STAMP_KIND, user_id, &d);
	if (r < 0 && r != -ENOENT)
		return r;
	d = r == 0 ? d : (struct doc){.kind = STR(STAMP_KIND), .id = user_id, .parent = user_id};
	d.body = json_text(a, body);
	return r == 0 ? tx_update(tx, &d) : tx_insert(tx, &d);
}
