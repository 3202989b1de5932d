/* Values: equality, addresses, and Cedar's JSON form of them. */
#include "policy/value.h"

#include "base/json.h"

#include <errno.h>

#define JSON_DEPTH_MAX 32
#define SHOWN_MAX 60 /* bytes */

const char *policy_kind_name(enum policy_kind kind)
{
	static const char *const names[] = {
	        [POLICY_BOOL] = "a boolean",   [POLICY_LONG] = "a number", [POLICY_STRING] = "a string",
	        [POLICY_ENTITY] = "an entity", [POLICY_SET] = "a set",     [POLICY_RECORD] = "a record",
	        [POLICY_IP] = "an address",
	};
	return names[kind];
}

struct str policy_shown(struct str text)
{
	size_t n = text.n < SHOWN_MAX ? text.n : SHOWN_MAX;
	while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--;
	return (struct str){text.p, n};
}

static bool ip_same(const struct policy_ip *a, const struct policy_ip *b)
{
	return a->v4 == b->v4 && a->bits == b->bits && ip_equal(&a->address, &b->address);
}

bool policy_set_has(const struct policy_value *set, const struct policy_value *item, unsigned *steps)
{
	for (size_t i = 0; i < set->count; i++)
		if (policy_equal(&set->items[i], item, steps))
			return true;
	return false;
}

static bool set_covers(const struct policy_value *set, const struct policy_value *items, unsigned *steps)
{
	for (size_t i = 0; i < items->count; i++)
		if (!policy_set_has(set, &items->items[i], steps))
			return false;
	return true;
}

/* Keys are unique in each, so equal counts and one direction are enough. */
static bool record_equal(const struct policy_value *a, const struct policy_value *b, unsigned *steps)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct policy_value *other = policy_field(b, a->fields[i].name);
		if (!other || !policy_equal(&a->fields[i].value, other, steps))
			return false;
	}
	return true;
}

bool policy_equal(const struct policy_value *a, const struct policy_value *b, unsigned *steps)
{
	if (*steps == 0)
		return false;
	(*steps)--;
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case POLICY_BOOL: return a->truth == b->truth;
	case POLICY_LONG: return a->number == b->number;
	case POLICY_STRING: return str_eq(a->text, b->text);
	case POLICY_ENTITY: return policy_uid_equal(a->uid, b->uid);
	case POLICY_SET: return set_covers(a, b, steps) && set_covers(b, a, steps);
	case POLICY_RECORD: return record_equal(a, b, steps);
	case POLICY_IP: return ip_same(&a->ip, &b->ip);
	}
	return false;
}

const struct policy_value *policy_field(const struct policy_value *record, struct str name)
{
	for (size_t i = 0; i < record->count; i++)
		if (str_eq(record->fields[i].name, name))
			return &record->fields[i].value;
	return NULL;
}

bool policy_ip_parse(struct str text, struct policy_ip *ret_ip)
{
	struct str address, length;
	struct policy_ip ip;
	uint64_t bits;
	bool has_length = str_cut(text, '/', &address, &length);
	if (!address.n || !ip_parse(address, &ip.address))
		return false;
	ip.v4 = !memchr(address.p, ':', address.n);
	if (!ip.v4 && memchr(address.p, '.', address.n))
		return false;
	bits = ip.v4 ? 32 : 128;
	if (has_length && (!str_to_u64(length, bits, &bits) || (length.n > 1 && length.p[0] == '0')))
		return false;
	ip.bits = (unsigned)bits;
	*ret_ip = ip;
	return true;
}

static struct cidr cidr_of(const struct policy_ip *ip)
{
	return (struct cidr){.net = ip->address, .bits = ip->v4 ? ip->bits + 96 : ip->bits, .v4 = ip->v4};
}

bool policy_ip_in_range(const struct policy_ip *ip, const struct policy_ip *range)
{
	struct cidr c = cidr_of(range);
	return ip->v4 == range->v4 && ip->bits >= range->bits && cidr_contains(&c, &ip->address);
}

bool policy_ip_is_loopback(const struct policy_ip *ip)
{
	static const struct policy_ip v6 = {.address = {{[15] = 1}}, .bits = 128};
	if (ip->v4)
		return ip->address.b[12] == 127 && ip->bits >= 8;
	return ip_same(ip, &v6);
}

bool policy_ip_is_multicast(const struct policy_ip *ip)
{
	if (ip->v4)
		return (ip->address.b[12] & 0xf0) == 0xe0 && ip->bits >= 4;
	return ip->address.b[0] == 0xff && ip->bits >= 8;
}

static int from_json(struct arena *a, const json_t *json, unsigned depth, struct policy_value *ret_value);

static int set_from_json(struct arena *a, const json_t *json, unsigned depth, struct policy_value *ret_value)
{
	size_t count = json_array_size(json);
	struct policy_value *items = arena_new_array(a, struct policy_value, count + 1);
	for (size_t i = 0; i < count; i++) {
		int result = from_json(a, json_array_get(json, i), depth + 1, &items[i]);
		if (result < 0)
			return result;
	}
	*ret_value = (struct policy_value){.kind = POLICY_SET, .count = count, .items = items};
	return 0;
}

static int record_from_json(struct arena *a, const json_t *json, unsigned depth, struct policy_value *ret_value)
{
	struct policy_field *fields = arena_new_array(a, struct policy_field, json_object_size(json) + 1);
	size_t count = 0;
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)json, key, value)
	{
		fields[count].name = str_of(key);
		int result = from_json(a, value, depth + 1, &fields[count].value);
		if (result < 0)
			return result;
		count++;
	}
	*ret_value = (struct policy_value){.kind = POLICY_RECORD, .count = count, .fields = fields};
	return 0;
}

static int object_from_json(struct arena *a, const json_t *json, unsigned depth, struct policy_value *ret_value)
{
	const json_t *entity = json_object_get(json, "__entity"), *extension = json_object_get(json, "__extn");
	struct policy_value value = {.kind = POLICY_ENTITY};
	if (entity) {
		value.uid = (struct policy_uid){json_field(entity, "type"), json_field(entity, "id")};
		if (!value.uid.type.n || !value.uid.id.p)
			return -EINVAL;
	} else if (extension) {
		value.kind = POLICY_IP;
		if (!str_is(json_field(extension, "fn"), "ip") ||
		    !policy_ip_parse(json_field(extension, "arg"), &value.ip))
			return -EINVAL;
	} else {
		return record_from_json(a, json, depth, ret_value);
	}
	*ret_value = value;
	return 0;
}

static int from_json(struct arena *a, const json_t *json, unsigned depth, struct policy_value *ret_value)
{
	if (depth > JSON_DEPTH_MAX)
		return -EINVAL;
	switch (json ? json_typeof(json) : JSON_NULL) {
	case JSON_TRUE:
	case JSON_FALSE: *ret_value = (struct policy_value){.kind = POLICY_BOOL, .truth = json_is_true(json)}; return 0;
	case JSON_INTEGER:
		*ret_value = (struct policy_value){.kind = POLICY_LONG, .number = json_integer_value(json)};
		return 0;
	case JSON_STRING:
		*ret_value = (struct policy_value){.kind = POLICY_STRING,
		                                   .text = {json_string_value(json), json_string_length(json)}};
		return 0;
	case JSON_ARRAY: return set_from_json(a, json, depth, ret_value);
	case JSON_OBJECT: return object_from_json(a, json, depth, ret_value);
	default: return -EINVAL;
	}
}

int policy_value_from_json(struct arena *a, const json_t *json, struct policy_value *ret_value)
{
	return from_json(a, json, 0, ret_value);
}

json_t *policy_entity_json(const char *type, struct str id)
{
	return json_pack("{s:{s:s, s:s%}}", "__entity", "type", type, "id", id.p ? id.p : "", id.n);
}

json_t *policy_ip_json(struct str text)
{
	return json_pack("{s:{s:s, s:s%}}", "__extn", "fn", "ip", "arg", text.p, text.n);
}
