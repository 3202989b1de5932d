/* The ring of encoded events, its listeners, and the thread that feeds them.
 *
 * Places: every event has a number without gaps (seq). `last` is the newest in the ring, `published` the newest that
 * listeners may be shown: between the two lies the look at their rights. A listener has been given all that it sees up
 * to its cursor.
 *
 * Locks: `feed` is held by who reads the store for the ring, `lock` for everything else, and never while the store is
 * read. `bell` is for waking the thread alone: the store's writer rings it, and must not wait for the others. */
#include "trail/live.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define RING_EVENTS 2048 /* as many as a loop may read at once: the first listener may have to fill the ring */
#define RING_BYTES ((size_t)4 << 20)
#define PAGE 256
#define BEAT_US INT64_C(15000000)
#define CHECK_US INT64_C(60000000) /* a session can end without a change of rights: by being idle */
#define CHECK_LEAST_US 100000      /* between two looks at all rights */
#define LOOK_MS 1000               /* how often deadlines are looked at */
#define LOOK_REMOTE_MS 200         /* and whether other processes have written events */
#define STEP 32                    /* events that listeners are asked about at a time */
#define REPLAY_EVENTS 256
#define REPLAY_BYTES ((size_t)256 << 10)
#define REPLAY_ALL ((size_t)16 << 20) /* of all listeners */
#define RETRY "retry: 1000\n"
#define NO_EVENT "0" /* the id of a place before which the client may have missed everything */

struct entry {
	struct live_event about; /* its texts lie behind the encoded one */
	unsigned refs;
	size_t n, size;
	char text[];
};

struct listener {
	struct live *live;
	struct listener *prev, *next;
	struct request *request;
	struct live_ear ear;
	char caller[ID_LEN], org[ID_LEN];
	unsigned refs; /* the edge's, and of a look at its rights */
	bool closed, resync, ended;
	const char *reason; /* of its end, or NULL */
	int64_t cursor, until_ms;
	uint64_t generation; /* of the rights that it has */
	int64_t checked_us, sent_us;
	bool beat;
	struct buf own; /* texts for it alone */
	size_t own_at, replayed;
	struct entry *entry; /* the event that is being sent, or NULL */
	size_t entry_at;
};

struct live {
	struct store *store;
	struct tx *reader; /* of the thread; opened with the first listener */
	pthread_t thread;
	pthread_mutex_t feed, lock, bell;
	pthread_cond_t rung;
	bool woken, listening, stopping; /* under the bell's lock; listening: there is somebody */
	bool running, draining;
	struct entry *ring[RING_EVENTS]; /* by seq */
	int64_t first, last, published;  /* without events first is last + 1 */
	size_t bytes, replaying;
	struct listener *listeners;
	size_t count;
	uint64_t events, resyncs, refused;
	int64_t rights_us; /* when rights were last looked at */
};

/* Encoding. */

static bool has_key(struct str body, const char *key)
{
	return memmem(body.p, body.n, key, strlen(key)) != NULL;
}

static void key_add(struct buf *b, struct str body, const char *quoted, const char *key, struct str value)
{
	if (!value.n || has_key(body, quoted))
		return;
	json_key(b, key);
	json_str(b, value);
}

static void encode(struct buf *b, const struct event *e)
{
	struct str body = e->body;
	buf_z(b, "id: ");
	buf_str(b, e->id);
	buf_z(b, "\ndata: ");
	size_t from = b->n;
	buf_add(b, body.p, body.n ? body.n - 1 : 0);
	key_add(b, body, "\"orgId\":", "orgId", e->org_id);
	key_add(b, body, "\"groupId\":", "groupId", e->group_id);
	key_add(b, body, "\"clusterName\":", "clusterName", e->cluster);
	json_close(b, '}');
	/* Bodies are written on one line; a stored one that is not must not end the event. */
	for (size_t i = from; i < b->n; i++)
		if (b->p[i] == '\n' || b->p[i] == '\r')
			b->p[i] = ' ';
	buf_z(b, "\n\n");
}

static struct live_event about_of(const struct event *e)
{
	return (struct live_event){.seq = e->seq,
	                           .id = e->id,
	                           .org_id = e->org_id,
	                           .group_id = e->group_id,
	                           .type = e->type,
	                           .cluster = e->cluster,
	                           .for_org = e->for_org,
	                           .for_group = e->for_group};
}

static struct str text_move(char **to, struct str text)
{
	char *at = *to;
	if (text.n)
		memcpy(at, text.p, text.n);
	*to += text.n;
	return (struct str){at, text.n};
}

static struct entry *entry_new(const struct event *e)
{
	struct buf b = {0};
	encode(&b, e);
	size_t size = sizeof(struct entry) + b.n + e->id.n + e->org_id.n + e->group_id.n + e->type.n + e->cluster.n;
	struct entry *n = must_malloc(size);
	char *to = n->text;
	*n = (struct entry){.about = about_of(e), .refs = 1, .n = b.n, .size = size};
	text_move(&to, buf_view(&b));
	n->about.id = text_move(&to, e->id);
	n->about.org_id = text_move(&to, e->org_id);
	n->about.group_id = text_move(&to, e->group_id);
	n->about.type = text_move(&to, e->type);
	n->about.cluster = text_move(&to, e->cluster);
	buf_free(&b);
	return n;
}

static void entry_unref(struct entry *e)
{
	if (e && --e->refs == 0)
		free(e);
}

/* The ring, with the lock held. */

static struct entry **ring_at(struct live *l, int64_t seq)
{
	return &l->ring[seq % RING_EVENTS];
}

static void ring_drop_first(struct live *l)
{
	struct entry **at = ring_at(l, l->first++);
	l->bytes -= (*at)->size;
	entry_unref(*at);
	*at = NULL;
}

/* The next event is the one after `last`. */
static void ring_restart(struct live *l, int64_t last)
{
	while (l->first <= l->last)
		ring_drop_first(l);
	l->first = last + 1;
	l->last = last;
}

static void ring_add(struct live *l, struct entry *e)
{
	if (e->about.seq != l->last + 1)
		ring_restart(l, e->about.seq - 1);
	while (l->first <= l->last && (l->last - l->first + 1 == RING_EVENTS || l->bytes + e->size > RING_BYTES))
		ring_drop_first(l);
	*ring_at(l, e->about.seq) = e;
	l->last = e->about.seq;
	l->bytes += e->size;
	l->events++;
}

static const struct entry *ring_find(struct live *l, struct str id)
{
	for (int64_t seq = l->last; seq >= l->first; seq--) {
		const struct entry *e = *ring_at(l, seq);
		if (str_eq(e->about.id, id))
			return e;
	}
	return NULL;
}

static bool sees(const struct listener *n, const struct entry *e)
{
	return n->ear.sees(n->ear.ctx, &e->about);
}

/* The newest event up to its cursor that the listener sees: where a client that has seen no event stands. */
static struct str listener_place(struct live *l, const struct listener *n)
{
	for (int64_t seq = n->cursor < l->last ? n->cursor : l->last; seq >= l->first; seq--)
		if (sees(n, *ring_at(l, seq)))
			return (*ring_at(l, seq))->about.id;
	return STR(NO_EVENT);
}

/* Reading the store. */

static int page_take(struct live *l, struct tx *tx, int64_t *seq)
{
	struct arena *a = arena_new();
	struct event *events = NULL;
	size_t count = 0;
	int r = tx_event_since(tx, a, *seq, PAGE, &events, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct entry *e = entry_new(&events[i]);
		pthread_mutex_lock(&l->lock);
		ring_add(l, e);
		pthread_mutex_unlock(&l->lock);
		*seq = events[i].seq;
	}
	arena_free(a);
	return r < 0 ? r : count > 0;
}

/* All was deleted (the test control's reset), and numbers begin anew. */
static void began_anew(struct live *l, int64_t newest)
{
	pthread_mutex_lock(&l->lock);
	ring_restart(l, newest);
	l->published = newest;
	for (struct listener *n = l->listeners; n; n = n->next) {
		n->cursor = newest;
		n->resync = true;
		http_stream_ready(n->request);
	}
	pthread_mutex_unlock(&l->lock);
}

/* Brings the ring up to date. `fresh`: the reader keeps no snapshot, so what it sees is not older than the ring. */
static int catch_up(struct live *l, struct tx *tx, bool fresh)
{
	int64_t newest = 0;
	pthread_mutex_lock(&l->feed);
	if (fresh)
		tx_rest(tx);
	tx_begin_read(tx);
	int r = tx_event_newest(tx, &newest);
	if (r == 0 && fresh && newest < l->last)
		began_anew(l, newest);
	int64_t seq = newest - RING_EVENTS > l->last ? newest - RING_EVENTS : l->last;
	int more = 1;
	while (r == 0 && seq < newest && more > 0)
		more = page_take(l, tx, &seq);
	tx_end_read(tx);
	pthread_mutex_unlock(&l->feed);
	return r < 0 ? r : more < 0 ? more : 0;
}

/* Wakes the thread, where somebody listens. */
static void bell_ring(struct live *l)
{
	pthread_mutex_lock(&l->bell);
	l->woken = true;
	if (l->listening)
		pthread_cond_signal(&l->rung);
	pthread_mutex_unlock(&l->bell);
}

/* Listeners. */

/* With the lock held. */
static void listeners_counted(struct live *l)
{
	pthread_mutex_lock(&l->bell);
	l->listening = l->count > 0;
	pthread_mutex_unlock(&l->bell);
}

static void listener_unref(struct listener *n)
{
	if (--n->refs)
		return;
	n->ear.free(n->ear.ctx);
	entry_unref(n->entry);
	buf_free(&n->own);
	free(n);
}

static void own_end(struct listener *n)
{
	buf_free(&n->own);
	n->own_at = 0;
	n->live->replaying -= n->replayed;
	n->replayed = 0;
}

/* Keeps the first n bytes, and no room for more: they may lie here as long as the client does not read. */
static void own_cut(struct listener *n, size_t size)
{
	struct buf all = n->own;
	n->own = (struct buf){0};
	buf_add(&n->own, all.p, size);
	buf_free(&all);
}

static size_t own_copy(struct listener *n, char *to, size_t room)
{
	size_t left = n->own.n - n->own_at, part = left < room ? left : room;
	if (!part)
		return 0;
	memcpy(to, n->own.p + n->own_at, part);
	n->own_at += part;
	if (n->own_at == n->own.n)
		own_end(n);
	return part;
}

static size_t entry_copy(struct listener *n, char *to, size_t room)
{
	if (!n->entry)
		return 0;
	size_t left = n->entry->n - n->entry_at, part = left < room ? left : room;
	memcpy(to, n->entry->text + n->entry_at, part);
	n->entry_at += part;
	if (n->entry_at == n->entry->n) {
		entry_unref(n->entry);
		n->entry = NULL;
	}
	return part;
}

static void resync_say(struct live *l, struct listener *n)
{
	n->cursor = n->cursor > l->published ? n->cursor : l->published;
	n->resync = false;
	struct str place = listener_place(l, n);
	buf_printf(&n->own, "id: %.*s\nevent: resync\ndata: {\"reason\":\"EVENTS_MISSED\"}\n\n", STR_ARG(place));
	l->resyncs++;
}

/* The listener's next event becomes the one that is sent. */
static bool entry_next(struct live *l, struct listener *n)
{
	while (n->cursor < l->published) {
		struct entry *e = *ring_at(l, ++n->cursor);
		if (!sees(n, e))
			continue;
		e->refs++;
		n->entry = e;
		n->entry_at = 0;
		return true;
	}
	return false;
}

/* Finds what is sent next. False: nothing now. */
static bool next(struct live *l, struct listener *n)
{
	if (n->ended)
		return false;
	if (n->reason) {
		buf_printf(&n->own, "event: end\ndata: {\"reason\":\"%s\"}\n\n", n->reason);
		n->ended = true;
		return true;
	}
	if (n->resync || (n->cursor < l->published && n->cursor < l->first - 1)) {
		resync_say(l, n);
		return true;
	}
	if (entry_next(l, n))
		return true;
	if (!n->beat)
		return false;
	n->beat = false;
	buf_z(&n->own, ":\n\n");
	return true;
}

static ssize_t listener_read(void *ctx, char *ret_bytes, size_t n)
{
	struct listener *me = ctx;
	struct live *l = me->live;
	size_t done = 0;
	pthread_mutex_lock(&l->lock);
	do {
		done += own_copy(me, ret_bytes + done, n - done);
		done += entry_copy(me, ret_bytes + done, n - done);
	} while (done < n && next(l, me));
	if (done)
		me->sent_us = clock_mono_us();
	bool over = me->ended;
	pthread_mutex_unlock(&l->lock);
	return done ? (ssize_t)done : over ? 0 : -EAGAIN;
}

static void listener_close(void *ctx)
{
	struct listener *n = ctx;
	struct live *l = n->live;
	pthread_mutex_lock(&l->lock);
	if (n->prev)
		n->prev->next = n->next;
	else
		l->listeners = n->next;
	if (n->next)
		n->next->prev = n->prev;
	l->count--;
	listeners_counted(l);
	n->closed = true;
	own_end(n);
	listener_unref(n);
	pthread_mutex_unlock(&l->lock);
}

/* With the lock held, so that it is not closed meanwhile. */
static void listener_ready(struct listener *n)
{
	if (!n->closed)
		http_stream_ready(n->request);
}

/* Joining. */

int live_admits(size_t all, size_t of_caller, size_t of_org)
{
	if (of_caller >= LIVE_CALLER_MAX)
		return -EMFILE;
	if (of_org >= LIVE_ORG_MAX)
		return -EDQUOT;
	bool many = of_caller >= LIVE_FEW || of_org >= LIVE_FEW;
	return all >= LIVE_MAX || (many && all >= LIVE_MAX - LIVE_RESERVE) ? -EBUSY : 0;
}

static int admit(struct live *l, struct str caller, struct str org)
{
	size_t of_caller = 0, of_org = 0;
	for (const struct listener *n = l->listeners; n; n = n->next) {
		of_caller += str_eq((struct str){n->caller, ID_LEN}, caller);
		of_org += str_eq((struct str){n->org, ID_LEN}, org);
	}
	int r = l->draining ? -ESHUTDOWN : live_admits(l->count, of_caller, of_org);
	l->refused += r < 0;
	return r;
}

/* What the client has missed of its list, from its newest events. False: it has missed more, or what it has seen last
 * is not there any more. */
static bool replay_write(struct listener *n, const struct event *events, size_t count, struct str last_id)
{
	size_t seen = 0;
	while (seen < count && !str_eq(events[seen].id, last_id))
		seen++;
	if (seen == count)
		return false;
	while (seen-- > 0 && n->own.n <= REPLAY_BYTES) {
		struct live_event about = about_of(&events[seen]);
		if (n->ear.sees(n->ear.ctx, &about))
			encode(&n->own, &events[seen]);
	}
	return n->own.n <= REPLAY_BYTES;
}

/* All of one snapshot, whose newest event becomes the listener's place: later ones come from the ring. */
static int replay(struct live *l, struct listener *n, const struct live_join *j)
{
	struct arena *a = arena_new();
	struct event *events = NULL;
	size_t count = 0, intro = n->own.n;
	tx_begin_read(j->tx);
	int r = tx_event_newest(j->tx, &n->cursor);
	if (r == 0)
		r = tx_event_list(j->tx, a, j->list, 0, REPLAY_EVENTS + 1, &events, &count);
	tx_end_read(j->tx);
	bool whole = r == 0 && replay_write(n, events, count, j->last_id);
	arena_free(a);
	pthread_mutex_lock(&l->lock);
	n->resync = !whole || l->replaying + n->own.n > REPLAY_ALL;
	if (n->resync)
		own_cut(n, intro);
	n->replayed = n->own.n;
	l->replaying += n->replayed;
	pthread_mutex_unlock(&l->lock);
	return r;
}

/* Where the listener begins. */
static int place(struct live *l, struct listener *n, const struct live_join *j)
{
	int r = catch_up(l, j->tx, false);
	if (r < 0)
		return r;
	buf_z(&n->own, RETRY);
	pthread_mutex_lock(&l->lock);
	const struct entry *seen = j->last_id.n ? ring_find(l, j->last_id) : NULL;
	bool found = seen && sees(n, seen);
	n->cursor = found ? seen->about.seq : l->last;
	if (!j->last_id.n) {
		struct str place = listener_place(l, n);
		buf_printf(&n->own, "id: %.*s\n", STR_ARG(place));
	}
	n->resync = j->last_id.n && !found;
	pthread_mutex_unlock(&l->lock);
	buf_c(&n->own, '\n');
	return n->resync && j->list ? replay(l, n, j) : 0;
}

int live_listen(struct live *l, struct request *r, const struct live_join *j, const struct live_ear *ear)
{
	struct listener *n = must_calloc(1, sizeof *n);
	*n = (struct listener){.live = l,
	                       .request = r,
	                       .ear = *ear,
	                       .refs = 1,
	                       .until_ms = j->until_ms,
	                       .generation = j->generation,
	                       .checked_us = clock_mono_us(),
	                       .sent_us = clock_mono_us()};
	if (j->caller.n == ID_LEN)
		memcpy(n->caller, j->caller.p, ID_LEN);
	if (j->org.n == ID_LEN)
		memcpy(n->org, j->org.p, ID_LEN);
	int result = place(l, n, j);
	pthread_mutex_lock(&l->lock);
	if (result == 0)
		result = admit(l, j->caller, j->org);
	if (result == 0) {
		n->next = l->listeners;
		if (n->next)
			n->next->prev = n;
		l->listeners = n;
		l->count++;
		listeners_counted(l);
	} else {
		own_end(n);
	}
	pthread_mutex_unlock(&l->lock);
	if (result < 0) {
		free(n);
		return result;
	}
	bell_ring(l);
	r->response.stream =
	        (struct body_stream){.read = listener_read, .close = listener_close, .ctx = n, .endless = true};
	return 0;
}

/* The thread. */

static void end(struct listener *n, const char *reason)
{
	if (n->reason)
		return;
	n->reason = reason;
	listener_ready(n);
}

/* Those whose rights were read before the last change of any, or too long ago; each is held. */
static struct listener **stale_take(struct live *l, struct arena *a, uint64_t generation, size_t *ret_count)
{
	int64_t now_us = clock_mono_us(), now_ms = clock_now_ms();
	size_t count = 0;
	pthread_mutex_lock(&l->lock);
	struct listener **list = arena_new_array(a, struct listener *, l->count + 1);
	for (struct listener *n = l->listeners; n; n = n->next) {
		if (n->until_ms <= now_ms)
			end(n, "SESSION_ENDED");
		if (n->reason || (n->generation == generation && now_us - n->checked_us < CHECK_US))
			continue;
		n->refs++;
		list[count++] = n;
	}
	pthread_mutex_unlock(&l->lock);
	*ret_count = count;
	return list;
}

/* Changes of rights may come often, and each would be a look at all listeners: for a moment they are gathered, and the
 * events after them wait. */
static void rights_wait(struct live *l)
{
	int64_t left = l->rights_us + CHECK_LEAST_US - clock_mono_us();
	if (left > 0)
		nanosleep(&(struct timespec){.tv_nsec = left * 1000}, NULL);
	l->rights_us = clock_mono_us();
}

static void rights_check(struct live *l)
{
	struct arena *a = arena_new();
	size_t count;
	uint64_t generation = store_identity_generation(l->store);
	struct listener **list = stale_take(l, a, generation, &count);
	if (count) {
		rights_wait(l);
		tx_rest(l->reader);
		tx_begin_read(l->reader);
	}
	for (size_t i = 0; i < count; i++) {
		struct listener *n = list[i];
		const char *reason = n->ear.check(n->ear.ctx, l->reader, a);
		pthread_mutex_lock(&l->lock);
		n->generation = generation;
		n->checked_us = clock_mono_us();
		if (reason)
			end(n, reason);
		listener_unref(n);
		pthread_mutex_unlock(&l->lock);
	}
	if (count)
		tx_end_read(l->reader);
	arena_free(a);
}

/* A listener that has been given all, and sees nothing of what is new, moves on without being woken. */
static bool is_concerned(struct live *l, struct listener *n, int64_t last)
{
	for (int64_t seq = n->cursor > l->first - 1 ? n->cursor + 1 : l->first; seq <= last; seq++)
		if (sees(n, *ring_at(l, seq)))
			return true;
	return false;
}

static void publish(struct live *l, int64_t last)
{
	int64_t now = clock_mono_us();
	pthread_mutex_lock(&l->lock);
	l->published = last > l->published ? last : l->published;
	for (struct listener *n = l->listeners; n; n = n->next) {
		bool behind = n->cursor < l->published && n->cursor < l->first - 1;
		if (behind || is_concerned(l, n, l->published))
			listener_ready(n);
		else if (n->cursor < l->published)
			n->cursor = l->published;
		if (now - n->sent_us >= BEAT_US) {
			n->beat = true;
			listener_ready(n);
		}
	}
	pthread_mutex_unlock(&l->lock);
}

static void feed(struct live *l)
{
	if (!l->reader)
		l->reader = store_reader(l->store);
	if (!l->reader || catch_up(l, l->reader, true) < 0) {
		publish(l, 0); /* the store is away: listeners are only shown that we are there */
		return;
	}
	/* Rights that were taken away before an event of the ring was written have moved the generation by now. */
	pthread_mutex_lock(&l->lock);
	int64_t last = l->last, to = l->published > l->first - 1 ? l->published : l->first - 1;
	pthread_mutex_unlock(&l->lock);
	rights_check(l);
	/* In steps, so that loops do not wait for the lock until all listeners were asked about all events. */
	while (to < last)
		publish(l, to = last - to > STEP ? to + STEP : last);
	publish(l, last);
	tx_rest(l->reader);
}

/* False: it shall end. */
static bool wait_for_work(struct live *l)
{
	int64_t ms = store_is_remote(l->store) ? LOOK_REMOTE_MS : LOOK_MS;
	int64_t until = clock_mono_us() + ms * 1000;
	struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
	int r = 0;
	pthread_mutex_lock(&l->bell);
	while (!l->stopping && !l->listening)
		pthread_cond_wait(&l->rung, &l->bell);
	while (!l->stopping && !l->woken && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&l->rung, &l->bell, &t);
	l->woken = false;
	bool goes_on = !l->stopping;
	pthread_mutex_unlock(&l->bell);
	return goes_on;
}

static void *live_main(void *arg)
{
	struct live *l = arg;
	while (wait_for_work(l))
		feed(l);
	return NULL;
}

/* On the store's thread. */
static void wake(void *ctx)
{
	bell_ring(ctx);
}

int live_open(struct store *s, struct live **ret_live)
{
	struct live *l = must_calloc(1, sizeof *l);
	pthread_condattr_t monotonic;
	l->store = s;
	l->first = 1;
	pthread_mutex_init(&l->feed, NULL);
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->bell, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->rung, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int r = -pthread_create(&l->thread, NULL, live_main, l);
	l->running = r == 0;
	if (r < 0) {
		fprintf(stderr, "steward: the thread for live events cannot start: %s\n", strerror(-r));
		live_free(l);
		return r;
	}
	store_on_events(s, wake, l);
	*ret_live = l;
	return 0;
}

void live_end_all(struct live *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->draining = true;
	for (struct listener *n = l->listeners; n; n = n->next)
		end(n, "SHUTDOWN");
	pthread_mutex_unlock(&l->lock);
}

void live_stop(struct live *l)
{
	if (!l || !l->running)
		return;
	store_on_events(l->store, NULL, NULL);
	pthread_mutex_lock(&l->bell);
	l->stopping = true;
	pthread_cond_signal(&l->rung);
	pthread_mutex_unlock(&l->bell);
	pthread_join(l->thread, NULL);
	l->running = false;
	store_reader_free(l->reader);
	l->reader = NULL;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	ring_restart(l, l->last);
	pthread_mutex_destroy(&l->feed);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->bell);
	pthread_cond_destroy(&l->rung);
	free(l);
}

void live_stats(struct live *l, struct live_stats *ret_stats)
{
	pthread_mutex_lock(&l->lock);
	*ret_stats = (struct live_stats){.listeners = l->count,
	                                 .events = l->events,
	                                 .resyncs = l->resyncs,
	                                 .refused = l->refused,
	                                 .ring_bytes = l->bytes};
	pthread_mutex_unlock(&l->lock);
}
