/* Links that need no credentials, such as those of backups and of activity feeds: they belong to who asked for them. A
 * link outlives the session in which it was asked for, so who had a stolen session would go on reading by links after
 * the session's end. Each link remembers the stamp that its person had, and is over when that is another.
 *
 *   "link_stamp"  id, parent = user; body {"stamp"}. None: the stamp is empty */
#ifndef STEWARD_IDENTITY_LINKS_H
#define STEWARD_IDENTITY_LINKS_H

#include "store/store.h"

/* In a write: all links that the person has asked for are over. */
must_check int links_end(struct tx *tx, struct arena *a, struct str user_id);
must_check int links_stamp(struct tx *tx, struct arena *a, struct str user_id, struct str *ret_stamp);

#endif
