/* Values of policies: what expressions evaluate to and what requests carry. */
#ifndef STEWARD_POLICY_VALUE_H
#define STEWARD_POLICY_VALUE_H

#include "base/arena.h"
#include "base/ip.h"

#include <jansson.h>

enum policy_kind { POLICY_BOOL, POLICY_LONG, POLICY_STRING, POLICY_ENTITY, POLICY_SET, POLICY_RECORD, POLICY_IP };

struct policy_uid {
	struct str type, id;
};

/* An address with a prefix length of its own family. Unlike struct cidr it keeps the host bits: Cedar compares them. */
struct policy_ip {
	struct ip address;
	unsigned bits;
	bool v4;
};

struct policy_field;

struct policy_value {
	enum policy_kind kind;
	size_t count; /* of a set or record */
	union {
		bool truth;
		int64_t number;
		struct str text;
		struct policy_uid uid;
		const struct policy_value *items;
		const struct policy_field *fields;
		struct policy_ip ip;
	};
};

struct policy_field {
	struct str name;
	struct policy_value value;
};

/* "a boolean", "a set": for messages. */
const char *policy_kind_name(enum policy_kind kind);

/* As much of a text as a message should repeat, cut between characters. */
struct str policy_shown(struct str text);

static inline bool policy_uid_equal(struct policy_uid a, struct policy_uid b)
{
	return str_eq(a.id, b.id) && str_eq(a.type, b.type);
}

/* Values of different kinds are unequal; sets are compared as sets. Takes a step from *steps for each pair of values
 * compared, and answers false when none is left. */
bool policy_equal(const struct policy_value *a, const struct policy_value *b, unsigned *steps);
bool policy_set_has(const struct policy_value *set, const struct policy_value *item, unsigned *steps);
/* NULL when there is no such field. */
const struct policy_value *policy_field(const struct policy_value *record, struct str name);

/* "10.0.0.0/8", "::1": no IPv4 inside IPv6, no leading zeros in the length. */
must_check bool policy_ip_parse(struct str text, struct policy_ip *ret_ip);
bool policy_ip_in_range(const struct policy_ip *ip, const struct policy_ip *range);
bool policy_ip_is_loopback(const struct policy_ip *ip);
bool policy_ip_is_multicast(const struct policy_ip *ip);

/* Cedar's JSON form: {"__entity": {"type", "id"}} is an entity, {"__extn": {"fn": "ip", "arg"}} an address, other
 * objects are records, arrays sets. Borrows the JSON's texts. -EINVAL for null, fractions and what is nested too
 * deeply. */
must_check int policy_value_from_json(struct arena *a, const json_t *json, struct policy_value *ret_value);

/* The other direction, for code that makes contexts. New references. */
json_t *policy_entity_json(const char *type, struct str id);
json_t *policy_ip_json(struct str text);

#endif
