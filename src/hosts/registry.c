/* Who is where. Each host keeps its own document; a thread reads all of them once a second and keeps what a call
 * needs of them in memory, so that a call that another host answers costs the store nothing more. */
#include "hosts/hosts.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/seal.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define LABEL_MAX 64
#define LOOK_AGAIN_US 200000
#define LOOK_SECONDS 1

struct known {
	struct host_place place;
	bool alive;
};

static struct {
	struct hosts_options options;
	char address[128];
	bool binds;
	struct arena *arena; /* of the papers */
	struct host_papers *_Atomic papers;
	struct http_server *http;
	struct tx *reader; /* the thread's, once it runs */
	pthread_t thread;
	bool watches, stopping;
	pthread_cond_t stop;
	pthread_mutex_t lock; /* of the list, and of stopping */
	struct known *list;
	size_t count;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct str hosts_self(void)
{
	return str_of(self.options.id ? self.options.id : "");
}

void hosts_bind(bool binds)
{
	self.binds = binds;
}

bool hosts_shared(void)
{
	return self.options.shared;
}

bool hosts_binds(void)
{
	return self.binds && self.options.id;
}

bool host_is_elsewhere(struct str id)
{
	return self.options.shared && id.n && !str_eq(id, hosts_self());
}

const struct host_papers *host_papers(void)
{
	return self.papers;
}

void hosts_inner(struct http_inner *ret_inner)
{
	const struct host_papers *p = self.papers;
	if (!p)
		return;
	ret_inner->certificate = p->certificate;
	ret_inner->key = p->key;
	ret_inner->authority = p->authority;
}

/* --- documents */

static struct host_room room_read(const json_t *from)
{
	return (struct host_room){.cores = json_integer_value(json_object_get(from, "cores")),
	                          .memory_mb = json_integer_value(json_object_get(from, "memoryMB")),
	                          .disk_mb = json_integer_value(json_object_get(from, "diskMB"))};
}

static json_t *room_json(const struct host_room *r)
{
	return json_pack("{s:I, s:I, s:I}", "cores", (json_int_t)r->cores, "memoryMB", (json_int_t)r->memory_mb,
	                 "diskMB", (json_int_t)r->disk_mb);
}

static struct host host_of(struct arena *a, const struct doc *d)
{
	json_t *body = doc_json(a, d->body);
	const json_t *used = json_object_get(body, "used");
	return (struct host){.id = d->id,
	                     .name = d->name,
	                     .address = json_field(body, "address"),
	                     .cordoned = json_is_true(json_object_get(body, "cordoned")),
	                     .age_ms = -1,
	                     .capacity = room_read(json_object_get(body, "capacity")),
	                     .bound = room_read(json_object_get(body, "bound")),
	                     .used = room_read(used),
	                     .clusters = json_integer_value(json_object_get(used, "clusters")),
	                     .labels = json_object_get(body, "labels"),
	                     .doc = *d,
	                     .body = body};
}

int hosts_read(struct tx *tx, struct arena *a, struct host **ret_list, size_t *ret_count)
{
	struct doc *docs = NULL;
	struct store_node *nodes = NULL;
	size_t count = 0, node_count = 0;
	int r = tx_list_all(tx, a, HOST_KIND, STR(""), &docs, &count);
	if (r == 0)
		r = tx_nodes(tx, a, &nodes, &node_count);
	if (r < 0)
		return r;
	struct host *list = arena_new_array(a, struct host, count + 1);
	for (size_t i = 0; i < count; i++) {
		list[i] = host_of(a, &docs[i]);
		for (size_t k = 0; k < node_count; k++)
			if (str_eq(nodes[k].id, list[i].id)) {
				list[i].age_ms = nodes[k].age_ms;
				list[i].alive = nodes[k].age_ms < NODE_DEAD_MS;
				list[i].usage = nodes[k].usage;
			}
		list[i].shared = list[i].address.n > 0;
		/* The one process of an embedded store has no row. */
		list[i].alive |= !list[i].shared && node_count == 0;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

int host_find(struct tx *tx, struct arena *a, struct str which, struct host *ret_host)
{
	struct host *list;
	size_t count;
	int r = hosts_read(tx, a, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_eq(list[i].id, which)) {
			*ret_host = list[i];
			return 0;
		}
	/* A name may look like another host's id. */
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_eq(list[i].name, which)) {
			*ret_host = list[i];
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

/* --- what this host says of itself */

static struct host_room machine_room(const char *data_dir)
{
	struct sysinfo memory;
	struct statvfs disk;
	struct host_room r = {.cores = sysconf(_SC_NPROCESSORS_ONLN)};
	if (sysinfo(&memory) == 0)
		r.memory_mb = (int64_t)((uint64_t)memory.totalram * memory.mem_unit >> 20);
	if (statvfs(data_dir, &disk) == 0)
		r.disk_mb = (int64_t)((uint64_t)disk.f_blocks * disk.f_frsize >> 20);
	return r;
}

/* The service's keys that this process has, the one in use first: a rotation waits until every host has the new one
 * (hosts_without_key()). */
static void keys_tell(char *ret_text, size_t size)
{
	char name[65];
	size_t n = 0;
	unsigned active = seal_is_ready() ? seal_key_active() : 0, count = seal_is_ready() ? seal_key_count() : 0;
	*ret_text = '\0';
	for (unsigned i = 0; i < count && n + HOST_KEY_TEXT + 1 < size; i++) {
		seal_key_name((active + i) % count, name);
		n += (size_t)snprintf(ret_text + n, size - n, "%s%.*s", n ? " " : "", HOST_KEY_TEXT, name);
	}
}

/* How busy the machine is, for people who look for a place. */
static void usage_tell(void)
{
	struct sysinfo memory;
	struct statvfs disk;
	struct host_room all = machine_room(self.options.data_dir);
	double load = 0;
	char text[256], keys[96];
	if (getloadavg(&load, 1) != 1 || sysinfo(&memory) != 0 || statvfs(self.options.data_dir, &disk) != 0)
		return;
	int64_t free_mb = (int64_t)((uint64_t)(memory.freeram + memory.bufferram) * memory.mem_unit >> 20),
	        free_disk = (int64_t)((uint64_t)disk.f_bavail * disk.f_frsize >> 20);
	keys_tell(keys, sizeof keys);
	int n = snprintf(text, sizeof text, "{\"load\":%.2f,\"memoryMB\":%lld,\"diskMB\":%lld,\"keys\":\"%s\"}", load,
	                 (long long)(all.memory_mb - free_mb), (long long)(all.disk_mb - free_disk), keys);
	store_node_usage(self.options.store, (struct str){text, (size_t)n});
}

static json_t *labels_merge(const json_t *configured, const json_t *set)
{
	json_t *all = json_deep_copy(configured);
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)set, name, value)
	{
		if (json_string_length(value))
			json_object_set(all, name, value);
		else
			json_object_del(all, name);
	}
	return all;
}

static json_t *labels_configured(void)
{
	json_t *labels = json_object();
	for (size_t i = 0; i < self.options.label_count; i++) {
		struct str name, value;
		str_cut(str_of(self.options.labels[i]), '=', &name, &value);
		json_object_setn_new(labels, name.p, name.n, json_stringn(value.p, value.n));
	}
	return labels;
}

/* A name that another host has gets a part of the id. */
static int name_choose(struct tx *tx, struct arena *a, struct str *ret_name)
{
	char machine[HOST_NAME_TEXT - 8] = "host";
	struct doc d;
	if (!self.options.name && gethostname(machine, sizeof machine) < 0)
		snprintf(machine, sizeof machine, "host");
	machine[sizeof machine - 1] = '\0';
	struct str name = arena_dup(a, str_of(self.options.name ? self.options.name : machine));
	int r = tx_get_by_name(tx, a, HOST_KIND, STR(""), name, &d);
	*ret_name = r == 0 && !str_eq(d.id, hosts_self())
	                    ? arena_printf(a, "%.*s-%s", STR_ARG(name), self.options.id + strlen(self.options.id) - 6)
	                    : name;
	return r == -ENOENT ? 0 : r;
}

static int announce_run(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	struct doc d;
	struct str name;
	struct host_room room = machine_room(self.options.data_dir);
	int r = tx_get(tx, a, HOST_KIND, hosts_self(), &d);
	bool there = r == 0;
	json_t *body = doc_json(a, there ? d.body : STR("{}")), *before = json_clone(a, body);
	if (there || r == -ENOENT)
		r = name_choose(tx, a, &name);
	if (r == 0) {
		if (!there) {
			json_put(body, "cordoned", json_false());
			json_put(body, "set", json_object());
			json_put(body, "used",
			         json_pack("{s:i, s:i, s:i, s:i}", "clusters", 0, "cores", 0, "memoryMB", 0, "diskMB",
			                   0));
		}
		json_put_str(body, "id", hosts_self());
		json_put_str(body, "name", name);
		json_put_z(body, "address", self.address);
		json_put(body, "capacity", room_json(&room));
		json_put(body, "bound", room_json(&self.options.bound));
		json_put(body, "configured", labels_configured());
		json_put(body, "labels",
		         labels_merge(json_object_get(body, "configured"), json_object_get(body, "set")));
		struct doc next = {.kind = STR(HOST_KIND),
		                   .id = hosts_self(),
		                   .parent = STR(""),
		                   .name = name,
		                   .created_ms = clock_now_ms(),
		                   .body = json_text(a, body)};
		if (!there)
			r = tx_insert(tx, &next);
		else if (!json_equal(before, body))
			r = tx_update(tx, &next);
	}
	arena_free(a);
	return r;
}

static int announce(void)
{
	return store_write_wait(self.options.store, announce_run, NULL);
}

int hosts_announce(const char *address)
{
	snprintf(self.address, sizeof self.address, "%s", address);
	usage_tell();
	return announce();
}

/* --- looking around */

static void list_replace(const struct host *hosts, size_t count)
{
	struct known *list = must_calloc(count + 1, sizeof *list);
	for (size_t i = 0; i < count; i++) {
		struct host_place *to = &list[i].place;
		snprintf(to->id, sizeof to->id, "%.*s", STR_ARG(hosts[i].id));
		snprintf(to->name, sizeof to->name, "%.*s", STR_ARG(hosts[i].name));
		snprintf(to->address, sizeof to->address, "%.*s", STR_ARG(hosts[i].address));
		list[i].alive = hosts[i].alive;
	}
	pthread_mutex_lock(&self.lock);
	struct known *old = self.list;
	self.list = list;
	self.count = count;
	pthread_mutex_unlock(&self.lock);
	free(old);
}

static bool is_listed(const struct host *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(list[i].id, hosts_self()))
			return true;
	return false;
}

static void papers_free(void *arg)
{
	arena_free(arg);
}

/* What was issued before stays in memory, a few kilobytes every two weeks, as others may read it. */
static int papers_take(bool follows)
{
	struct arena *a = arena_new();
	struct host_papers *fresh = arena_new_of(a, struct host_papers);
	int r = papers_make(self.options.store, a, self.options.id, follows, fresh);
	if (r < 0) {
		arena_free(a);
		return r;
	}
	arena_defer(self.arena, papers_free, a);
	self.papers = fresh;
	return 0;
}

/* Before they end, and when another host has made a new authority or the store has lost it: who trusts different ones
 * cannot speak to each other. `authority`: the store's. */
static void papers_renew(struct str authority)
{
	struct http_inner inner = {.listen = "hosts"};
	struct str before = self.papers->authority;
	bool same = str_eq(authority, before);
	if ((same && clock_now_ms() < self.papers->renew_ms) || papers_take(!same) < 0)
		return;
	if (!str_eq(self.papers->authority, before))
		log_warn("hosts: the authority of the hosts has changed; this host has a certificate of the new one");
	hosts_inner(&inner);
	if (http_inner_renew(self.http, &inner) < 0)
		log_error("hosts: the old certificate stays in force");
}

/* The test control's reset takes everything away; and an operator may have removed a host that was only cut off. */
static void return_to_list(void)
{
	int r = announce();
	if (r == 0 && self.options.count)
		r = self.options.count(self.options.store);
	if (r < 0)
		log_warn("hosts: the store was not told where this host is");
	else
		log_info("hosts: this host was not in the store's list any more, and is again");
}

static void registry_look(void)
{
	struct host *list;
	size_t count;
	struct str authority;
	struct arena *a = arena_new();
	usage_tell();
	tx_begin_read(self.reader);
	int r = hosts_read(self.reader, a, &list, &count);
	if (r == 0)
		r = hosts_authority(self.reader, a, &authority);
	tx_end_read(self.reader);
	tx_rest(self.reader);
	if (r == 0) {
		list_replace(list, count);
		if (!is_listed(list, count))
			return_to_list();
		papers_renew(authority);
	}
	arena_free(a);
}

static void *watch_main(void *arg)
{
	pthread_mutex_lock(&self.lock);
	while (!self.stopping) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += LOOK_SECONDS;
		while (!self.stopping && pthread_cond_timedwait(&self.stop, &self.lock, &until) == 0)
			;
		bool stopping = self.stopping;
		pthread_mutex_unlock(&self.lock);
		if (!stopping)
			registry_look();
		pthread_mutex_lock(&self.lock);
	}
	pthread_mutex_unlock(&self.lock);
	return NULL;
}

int hosts_watch(struct http_server *http)
{
	pthread_condattr_t monotonic;
	self.http = http;
	self.reader = store_reader(self.options.store);
	if (!self.reader)
		return -EIO;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&self.stop, &monotonic);
	pthread_condattr_destroy(&monotonic);
	self.stopping = false;
	registry_look();
	int r = -pthread_create(&self.thread, NULL, watch_main, NULL);
	self.watches = r == 0;
	return r;
}

void hosts_unwatch(void)
{
	if (self.watches) {
		pthread_mutex_lock(&self.lock);
		self.stopping = true;
		pthread_cond_signal(&self.stop);
		pthread_mutex_unlock(&self.lock);
		pthread_join(self.thread, NULL);
		pthread_cond_destroy(&self.stop);
	}
	if (self.reader)
		store_reader_free(self.reader);
	self.reader = NULL;
	self.watches = false;
}

int host_where(struct str id, struct host_place *ret_place)
{
	int r = -ENOENT;
	pthread_mutex_lock(&self.lock);
	for (size_t i = 0; i < self.count && r == -ENOENT; i++)
		if (str_is(id, self.list[i].place.id)) {
			*ret_place = self.list[i].place;
			r = self.list[i].alive && ret_place->address[0] ? 0 : -EHOSTDOWN;
		}
	pthread_mutex_unlock(&self.lock);
	return r;
}

/* One that has just come, or is back. */
int host_look_up(struct tx *tx, struct str id, struct host_place *ret_place)
{
	static _Atomic int64_t looked_us;
	struct host *list;
	size_t count;
	int64_t last = looked_us, now = clock_mono_us();
	int r = host_where(id, ret_place);
	if (r == 0 || now - last < LOOK_AGAIN_US || !atomic_compare_exchange_strong(&looked_us, &last, now))
		return r;
	struct arena *a = arena_new();
	if (hosts_read(tx, a, &list, &count) == 0) {
		list_replace(list, count);
		r = host_where(id, ret_place);
	}
	arena_free(a);
	return r;
}

void hosts_stats(struct hosts_stats *ret_stats)
{
	*ret_stats = (struct hosts_stats){0};
	forward_stats(ret_stats);
	pthread_mutex_lock(&self.lock);
	for (size_t i = 0; i < self.count; i++)
		*(self.list[i].alive ? &ret_stats->alive : &ret_stats->away) += 1;
	pthread_mutex_unlock(&self.lock);
}

/* --- the operator's word */

static int operator_event(struct tx *tx, struct arena *a, const char *type, const struct host *host, struct str detail)
{
	struct str org_id;
	struct event_detail details[] = {{"host", host->name, 0}, {"labels", detail, 0}};
	int r = tx_meta_get(tx, a, "bootstrap", &org_id);
	struct event_about about = {.org_id = org_id, .details = details, .detail_count = detail.n ? 2 : 1};
	return r < 0 ? r : event_service_about(tx, a, type, &about);
}

static int host_save(struct tx *tx, struct arena *a, struct host *host)
{
	host->doc.body = json_text(a, host->body);
	host->doc.rev = 0;
	return tx_update(tx, &host->doc);
}

int host_cordon(struct tx *tx, struct arena *a, struct host *host, bool cordoned)
{
	if (host->cordoned == cordoned)
		return 1;
	json_put(host->body, "cordoned", json_boolean(cordoned));
	host->cordoned = cordoned;
	int r = host_save(tx, a, host);
	return r < 0 ? r
	             : operator_event(tx, a, cordoned ? "SERVICE_HOST_CORDONED" : "SERVICE_HOST_UNCORDONED", host,
	                              STR_NONE);
}

bool host_label_is_valid(struct str name, struct str value)
{
	if (!name.n || name.n > LABEL_MAX || value.n > LABEL_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!isalnum((unsigned char)name.p[i]) && !strchr("._-/", name.p[i]))
			return false;
	for (size_t i = 0; i < value.n; i++)
		if (value.p[i] <= ' ' || value.p[i] > '~')
			return false;
	return true;
}

int host_label(struct tx *tx, struct arena *a, struct host *host, struct str name, struct str value)
{
	if (!host_label_is_valid(name, value))
		return -EINVAL;
	json_t *set = json_object_get(host->body, "set");
	if (!set) {
		json_put(host->body, "set", json_object());
		set = json_object_get(host->body, "set");
	}
	json_object_setn_new(set, name.p, name.n, json_stringn(value.n ? value.p : "", value.n));
	json_t *labels = labels_merge(json_object_get(host->body, "configured"), set);
	bool same = json_equal(labels, json_object_get(host->body, "labels"));
	json_put(host->body, "labels", labels);
	host->labels = json_object_get(host->body, "labels");
	int r = host_save(tx, a, host);
	if (r < 0 || same)
		return r < 0 ? r : 1;
	return operator_event(tx, a, "SERVICE_HOST_LABELED", host, json_text(a, host->labels));
}

int host_remove(struct tx *tx, struct arena *a, struct host *host)
{
	if (host->alive)
		return -EBUSY;
	int r = tx_delete(tx, HOST_KIND, host->id);
	return r < 0 ? r : operator_event(tx, a, "SERVICE_HOST_REMOVED", host, STR_NONE);
}

/* --- life */

int hosts_open(const struct hosts_options *o)
{
	self.options = *o;
	if (!o->shared)
		return 0;
	self.arena = arena_new();
	int r = papers_take(false);
	if (r < 0)
		fprintf(stderr, "steward: the certificates for calls between hosts cannot be made: %s\n", strerror(-r));
	return r < 0 ? r : forward_start(o->workers);
}

void hosts_close(void)
{
	hosts_unwatch();
	if (self.options.shared)
		forward_stop();
	arena_free(self.arena);
	free(self.list);
	self.arena = NULL;
	self.papers = NULL;
	self.http = NULL;
	self.list = NULL;
	self.count = 0;
	self.options = (struct hosts_options){.id = NULL};
}
