/* Credentials that were got and still hold, in memory only. */
#include "providers/request.h"

#include "base/clock.h"

#include <stdlib.h>

/* What ends sooner is not given out: whoever gets it has work to do with it. */
#define MARGIN_US (INT64_C(300) * 1000000)

void provider_credentials_free(struct provider_credentials *c)
{
	provider_wipe(c->key_id);
	provider_wipe(c->secret);
	provider_wipe(c->token);
	*c = (struct provider_credentials){.token = NULL};
}

static char *copy_of(const char *text)
{
	return text ? must_strdup(text) : NULL;
}

static struct provider_credentials credentials_copy(const struct provider_credentials *c)
{
	return (struct provider_credentials){
	        .key_id = copy_of(c->key_id), .secret = copy_of(c->secret), .token = copy_of(c->token)};
}

static void kept_free(struct provider_kept *k)
{
	free(k->key);
	provider_credentials_free(&k->credentials);
}

/* The caller holds the lock. */
static void kept_remove(struct providers *p, size_t at)
{
	kept_free(&p->kept[at]);
	p->kept[at] = p->kept[--p->kept_count];
}

bool provider_kept_get(struct providers *p, const char *key, struct provider_credentials *ret_credentials)
{
	int64_t now = clock_boot_us();
	bool found = false;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; !found && i < p->kept_count; i++)
		if (strcmp(p->kept[i].key, key) == 0 && p->kept[i].until_us - MARGIN_US > now) {
			*ret_credentials = credentials_copy(&p->kept[i].credentials);
			found = true;
		}
	pthread_mutex_unlock(&p->lock);
	return found;
}

/* Room for one more: what holds no longer goes, and where all hold, what ends first. */
static void kept_make_room(struct providers *p, const char *key)
{
	int64_t now = clock_boot_us();
	size_t first = 0;
	for (size_t i = p->kept_count; i-- > 0;)
		if (p->kept[i].until_us <= now || strcmp(p->kept[i].key, key) == 0)
			kept_remove(p, i);
	for (size_t i = 1; i < p->kept_count; i++)
		if (p->kept[i].until_us < p->kept[first].until_us)
			first = i;
	if (p->kept_count == PROVIDER_KEPT)
		kept_remove(p, first);
}

void provider_kept_put(struct providers *p, const char *key, const struct provider_credentials *c, int64_t lasts_us)
{
	pthread_mutex_lock(&p->lock);
	kept_make_room(p, key);
	if (!p->kept)
		p->kept = must_calloc(PROVIDER_KEPT, sizeof *p->kept);
	p->kept[p->kept_count++] = (struct provider_kept){
	        .key = must_strdup(key), .credentials = credentials_copy(c), .until_us = clock_boot_us() + lasts_us};
	pthread_mutex_unlock(&p->lock);
}

void provider_kept_drop(struct providers *p, struct str id)
{
	pthread_mutex_lock(&p->lock);
	for (size_t i = p->kept_count; i-- > 0;)
		if (strncmp(p->kept[i].key, id.p, id.n) == 0 && p->kept[i].key[id.n] == '\n')
			kept_remove(p, i);
	pthread_mutex_unlock(&p->lock);
}

void provider_kept_free(struct providers *p)
{
	while (p->kept_count)
		kept_remove(p, 0);
	free(p->kept);
}
