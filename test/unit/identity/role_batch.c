/* The role engine for the property test. Reads lines {"steps": [...], "questions": [...]}: the steps make and change
 * organizations, projects, people and grants with the product's own functions, on a store; each question is a caller
 * and an operation with its scope, decided by the gates in their order. Writes the roles' names once, and then for each
 * question the status of the refusal (0: let through) and the mask of the roles that the gates found. */
#include "gate_fixture.h"

#include "api/users/users.h"
#include "base/id.h"

#include <errno.h>

static struct str text_at(const json_t *list, size_t i)
{
	const json_t *value = json_array_get(list, i);
	return (struct str){json_string_value(value), json_string_length(value)};
}

static enum grantee grantee_of(struct str name)
{
	if (str_is(name, "key"))
		return GRANTEE_KEY;
	if (str_is(name, "account"))
		return GRANTEE_ACCOUNT;
	return str_is(name, "team") ? GRANTEE_TEAM : GRANTEE_USER;
}

/* ["put", kind, id, parent, body] */
static int step_put(struct tx *tx, const json_t *step)
{
	struct doc d = {.kind = text_at(step, 1),
	                .id = text_at(step, 2),
	                .parent = text_at(step, 3),
	                .created_ms = clock_now_ms(),
	                .body = text_at(step, 4)};
	return tx_insert(tx, &d);
}

/* ["move", project, organization] */
static int step_move(struct tx *tx, const json_t *step)
{
	struct doc d;
	int r = tx_get(tx, fx.arena, "project", text_at(step, 1), &d);
	d.parent = text_at(step, 2);
	return r < 0 ? r : tx_move(tx, &d);
}

/* ["grant", who, id, in organization?, scope, [roles]] */
static int step_grant(struct tx *tx, const json_t *step)
{
	bool in_org = json_is_true(json_array_get(step, 3));
	return grant_set(tx, fx.arena, grantee_of(text_at(step, 1)), text_at(step, 2), in_org, text_at(step, 4),
	                 roles_from_json(json_array_get(step, 5), in_org));
}

static int step_run(struct tx *tx, const json_t *step)
{
	struct str what = text_at(step, 0);
	if (str_is(what, "put"))
		return step_put(tx, step);
	if (str_is(what, "delete"))
		return tx_delete(tx, json_string_value(json_array_get(step, 1)), text_at(step, 2));
	if (str_is(what, "move"))
		return step_move(tx, step);
	if (str_is(what, "grant"))
		return step_grant(tx, step);
	if (str_is(what, "join"))
		return team_set_user(tx, fx.arena, text_at(step, 1), text_at(step, 2), true);
	if (str_is(what, "leave"))
		return team_set_user(tx, fx.arena, text_at(step, 1), text_at(step, 2), false);
	if (str_is(what, "drop"))
		return grants_delete_grantee(tx, fx.arena, grantee_of(text_at(step, 1)), text_at(step, 2));
	if (str_is(what, "clear"))
		return grants_delete_scope(tx, fx.arena, json_is_true(json_array_get(step, 1)), text_at(step, 2));
	return -EINVAL;
}

static int steps_run(struct tx *tx, void *ctx)
{
	const json_t *steps = ctx;
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(steps); i++)
		r = step_run(tx, json_array_get(steps, i));
	return r;
}

/* {"caller": [kind, id], "op": id, "params": {name: value}, "body"?: {...}} */
static int decide(const json_t *question, struct call **ret_call)
{
	const json_t *who = json_object_get(question, "caller"), *params = json_object_get(question, "params");
	const struct op *op = catalog_op(json_string_value(json_object_get(question, "op")));
	enum grantee kind = grantee_of(text_at(who, 0));
	struct call *c = fixture_call(op, "GET", "/api/svc/v2/x", NULL);
	*ret_call = c;
	if (!op)
		return -1;
	for (unsigned i = 0; i < op->path_param_count; i++) {
		const json_t *value = json_object_get(params, op->path_params[i].name);
		c->params[i] = value ? (struct str){json_string_value(value), json_string_length(value)} : STR("x");
	}
	c->body = json_object_get(question, "body");
	if (op->tenant != TENANT_PUBLIC) {
		int r = principal_load(c->tx,
		                       kind == GRANTEE_KEY       ? PRINCIPAL_API_KEY
		                       : kind == GRANTEE_ACCOUNT ? PRINCIPAL_SERVICE_ACCOUNT
		                                                 : PRINCIPAL_USER,
		                       text_at(who, 1), &c->caller);
		if (r < 0) /* the credential is gone */
			return -401;
	}
	int r = gate_membership(c);
	if (r == 0)
		r = gate_roles(c);
	if (r == 0)
		r = gate_body_scope(c);
	principal_unref(c->caller);
	return r;
}

static void line_run(const char *line)
{
	json_t *in = json_loads(line, 0, NULL);
	const json_t *questions = json_object_get(in, "questions");
	int r = store_write_wait(fx.service.store, steps_run, json_object_get(in, "steps"));
	CHECK(r == 0);
	tx_begin_read(fx.loop.reader);
	for (size_t i = 0; i < json_array_size(questions); i++) {
		struct call *c;
		r = decide(json_array_get(questions, i), &c);
		printf("%d %llx\n", -r, (unsigned long long)c->roles);
		arena_reset(fx.arena);
	}
	tx_end_read(fx.loop.reader);
	json_decref(in);
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	log_setup(LOG_ERROR, false);
	fixture_setup();
	for (unsigned i = 0; i < role_count; i++)
		printf("%s%s", i ? " " : "", role_names[i]);
	putchar('\n');
	while (getline(&line, &room, stdin) > 0)
		line_run(line);
	free(line);
	fixture_teardown();
	return check_failed > 0 || check_passed == 0;
}
