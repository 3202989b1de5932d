/* Where a new cluster goes: to a host whose labels fit its first region, that takes new clusters, is alive and has
 * room; of several, to the one with the most room left. It is decided and taken inside the write that makes the
 * cluster, and writes of all processes come one after the other, so that two cannot have the last room. */
#include "hosts/hosts.h"

#include "base/buf.h"

#include <errno.h>

/* As the store says in this very write. */
static bool is_there(const struct host *h)
{
	return str_eq(h->id, hosts_self()) || (hosts_shared() && h->alive);
}

/* A label that is not there fits everything. */
static bool label_fits(const struct host *h, const char *name, struct str value)
{
	struct str label = json_field(h->labels, name);
	return !label.n || !value.n || str_eq(label, value);
}

static bool fits(int64_t used, int64_t need, int64_t bound)
{
	return !bound || used + need <= bound;
}

static const char *lacking(const struct host *h, const struct host_room *need)
{
	return !fits(h->used.cores, need->cores, h->bound.cores)               ? "cores"
	       : !fits(h->used.memory_mb, need->memory_mb, h->bound.memory_mb) ? "memory"
	       : !fits(h->used.disk_mb, need->disk_mb, h->bound.disk_mb)       ? "disk"
	                                                                       : NULL;
}

/* Thousandths of its memory that clusters stand for already. */
static int64_t fullness(const struct host *h)
{
	int64_t all = h->bound.memory_mb ? h->bound.memory_mb : h->capacity.memory_mb;
	return all ? h->used.memory_mb * 1000 / all : 0;
}

static bool is_better(const struct host *h, const struct host *than)
{
	if (!than || fullness(h) != fullness(than))
		return !than || fullness(h) < fullness(than);
	return h->clusters < than->clusters;
}

static int used_save(struct tx *tx, struct arena *a, struct host *h)
{
	json_put(h->body, "used",
	         json_pack("{s:I, s:I, s:I, s:I}", "clusters", (json_int_t)h->clusters, "cores",
	                   (json_int_t)h->used.cores, "memoryMB", (json_int_t)h->used.memory_mb, "diskMB",
	                   (json_int_t)h->used.disk_mb));
	h->doc.body = json_text(a, h->body);
	h->doc.rev = 0;
	return tx_update(tx, &h->doc);
}

static int64_t change(int64_t used, int64_t before, int64_t after)
{
	used += after - before;
	return used > 0 ? used : 0;
}

/* Why each host that was looked at is not taken. */
static struct str refusal(struct arena *a, struct host *list, size_t count, struct str provider, struct str region,
                          const struct host_room *need)
{
	struct buf b = {0};
	buf_printf(&b,
	           "No host takes a cluster for %.*s/%.*s that needs %lld cores, %lld MB of memory and %lld MB of disk",
	           STR_ARG(provider), STR_ARG(region), (long long)need->cores, (long long)need->memory_mb,
	           (long long)need->disk_mb);
	for (size_t i = 0; i < count && b.n < 800; i++) {
		const char *lack = lacking(&list[i], need);
		struct str label =
		        json_field(list[i].labels, label_fits(&list[i], "region", region) ? "provider" : "region");
		buf_printf(&b, "%s %.*s ", i ? ";" : ":", STR_ARG(list[i].name));
		if (!label_fits(&list[i], "provider", provider) || !label_fits(&list[i], "region", region))
			buf_printf(&b, "is for %.*s", STR_ARG(label));
		else if (!is_there(&list[i]))
			buf_z(&b, "is away");
		else if (list[i].cordoned)
			buf_z(&b, "is cordoned");
		else
			buf_printf(&b, "lacks %s", lack ? lack : "room");
	}
	buf_c(&b, '.');
	struct str text = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return text;
}

int hosts_place(struct tx *tx, struct arena *a, struct str provider, struct str region, const struct host_room *need,
                struct str *ret_host, struct str *ret_why)
{
	struct host *list, *best = NULL;
	size_t count;
	*ret_host = STR_NONE;
	bool binds = hosts_binds();
	int r = binds ? hosts_read(tx, a, &list, &count) : 0;
	if (r < 0 || !binds || !count)
		return r;
	for (size_t i = 0; i < count; i++)
		if (!list[i].cordoned && is_there(&list[i]) && label_fits(&list[i], "provider", provider) &&
		    label_fits(&list[i], "region", region) && !lacking(&list[i], need) && is_better(&list[i], best))
			best = &list[i];
	if (!best) {
		*ret_why = refusal(a, list, count, provider, region, need);
		return -EDQUOT;
	}
	best->used.cores += need->cores;
	best->used.memory_mb += need->memory_mb;
	best->used.disk_mb += need->disk_mb;
	best->clusters++;
	*ret_host = best->id;
	return used_save(tx, a, best);
}

static bool grows_beyond(int64_t used, int64_t before, int64_t after, int64_t bound)
{
	return after > before && !fits(used - before, after, bound);
}

int hosts_fit(struct tx *tx, struct arena *a, struct str host, const struct host_room *before,
              const struct host_room *after, struct str *ret_why)
{
	struct host h;
	int r = host.n ? host_find(tx, a, host, &h) : -ENOENT;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const char *lack = grows_beyond(h.used.cores, before->cores, after->cores, h.bound.cores) ? "cores"
	                   : grows_beyond(h.used.memory_mb, before->memory_mb, after->memory_mb, h.bound.memory_mb)
	                           ? "memory"
	                   : grows_beyond(h.used.disk_mb, before->disk_mb, after->disk_mb, h.bound.disk_mb) ? "disk"
	                                                                                                    : NULL;
	if (!lack)
		return 0;
	*ret_why = arena_printf(
	        a,
	        "The host %.*s, where the cluster is, lacks %s for it to grow to %lld cores, %lld MB of "
	        "memory and %lld MB of disk.",
	        STR_ARG(h.name), lack, (long long)after->cores, (long long)after->memory_mb, (long long)after->disk_mb);
	return -EDQUOT;
}

int hosts_account(struct tx *tx, struct arena *a, struct str host, const struct host_room *before,
                  const struct host_room *after, int64_t clusters)
{
	struct host h;
	int r = host.n ? host_find(tx, a, host, &h) : -ENOENT;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	h.used.cores = change(h.used.cores, before->cores, after->cores);
	h.used.memory_mb = change(h.used.memory_mb, before->memory_mb, after->memory_mb);
	h.used.disk_mb = change(h.used.disk_mb, before->disk_mb, after->disk_mb);
	h.clusters = change(h.clusters, 0, clusters);
	return used_save(tx, a, &h);
}

int hosts_used(struct tx *tx, struct arena *a, const struct host_room *used, int64_t clusters)
{
	struct host h;
	int r = host_find(tx, a, hosts_self(), &h);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	h.used = *used;
	h.clusters = clusters;
	return used_save(tx, a, &h);
}
