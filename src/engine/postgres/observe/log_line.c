/* Which log a line belongs to, and what of it may be given. */
#include "engine/postgres/observe/log_line.h"

#include "engine/postgres/model/model.h"

/* The quotes of a value are escaped, so what is looked for is a field and nothing that a user wrote. Class 28 is who
 * somebody is, 42501 a right that is missing. */
enum mark {
	AUDIT = 1,
	CONTEXT = 2,
	LOGIN = 4,
	DENIAL = 8,
	SESSION = 16,
	OWN = 32,
	COMING = 64,
	DETAIL = 128,
	SECRET = 256,
	UPKEEP = 512,
	PATH = 1024,
	RULE = 2048,
	SERVICE = 4096
};
static const struct {
	const char *text;
	enum mark mark;
} marks[] = {{",\"message\":\"AUDIT: ", AUDIT},
             {",\"context\":\"", CONTEXT},
             {",\"message\":\"connection auth", LOGIN},
             {",\"message\":\"disconnection: ", LOGIN},
             {",\"state_code\":\"28", LOGIN},
             {",\"state_code\":\"42501\"", DENIAL},
             {",\"user\":\"", SESSION},
             {",\"remote_host\":\"[local]\"", OWN},
             {",\"message\":\"connection ", COMING},
             {",\"message\":\"replication connection ", COMING},
             {",\"message\":\"disconnection: ", COMING},
             {",\"detail\":\"", DETAIL},
             {"ldapbindpasswd=", SECRET},
             {",\"message\":\"received SIGHUP, reloading", UPKEEP},
             {",\"message\":\"parameter \\\"", UPKEEP},
             {",\"message\":\"listening on Unix socket", UPKEEP},
             {"\\\"/", PATH},
             {" (/", RULE},
             {",\"user\":\"" PG_USER, SERVICE}};

unsigned pg_log_marks(const char *p, size_t n)
{
	unsigned found = 0;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (memmem(p, n, marks[i].text, strlen(marks[i].text)))
			found |= marks[i].mark;
	return found;
}

bool pg_log_is_own(unsigned m)
{
	/* People's statements from the console come by the same socket, as users of theirs. */
	bool service = m & SERVICE || !(m & SESSION);
	/* A session may write the same words, but has a user. */
	return (m & OWN && m & COMING && service) || (m & UPKEEP && !(m & SESSION));
}

bool pg_log_is_audit(unsigned m, int64_t at_ms, int64_t logins_ms, int64_t denials_ms)
{
	/* pgaudit hides its context; what a user's code raises under its name has one. */
	if (m & AUDIT)
		return !(m & CONTEXT);
	return (logins_ms && at_ms >= logins_ms && m & LOGIN) || (denials_ms && at_ms >= denials_ms && m & DENIAL);
}

const char *pg_log_cut_field(unsigned m, bool redact)
{
	/* Of a refusal the server tells the rule that it met, with the password of the directory in it. */
	if (m & LOGIN && m & DETAIL && m & SECRET)
		return "detail";
	/* How somebody was let in ends with the file of the rule and its line. Versions from 16 on name the file of a
	 * refusal, too. */
	if (m & LOGIN && m & RULE)
		return "rule";
	if (m & LOGIN && m & DETAIL && m & PATH)
		return "detail";
	/* What the server itself says of its files tells where they lie on this host, which is nobody's business. */
	if (m & PATH && !(m & SESSION))
		return "path";
	/* What stands before the message says nothing of data; all that comes after it may. */
	return redact && m & SESSION && !(m & LOGIN) ? "message" : NULL;
}

/* What stands before the message are names, which may be anything: neither they nor what they look like are cut. */
static const char *cut_find(struct str line, const char *begin)
{
	static const char message[] = ",\"message\":\"";
	const char *from = memmem(line.p, line.n, message, strlen(message));
	return from ? memmem(from, line.n - (size_t)(from - line.p), begin, strlen(begin)) : NULL;
}

size_t pg_log_cut(struct str line, const char *field, const char **ret_rest)
{
	static const struct {
		const char *field, *begin, *rest;
	} cuts[] = {{"detail", ",\"detail\":\"", ",\"detail\":\"redacted\"}\n"},
	            {"message", ",\"message\":\"", ",\"message\":\"redacted\"}\n"},
	            {"rule", " (/", "\"}\n"},
	            {"path", "\\\"/", "\\\"a file of the host\\\"\"}\n"}};
	size_t i = 0;
	while (strcmp(field, cuts[i].field) != 0)
		i++;
	const char *at = cut_find(line, cuts[i].begin);
	*ret_rest = at ? cuts[i].rest : NULL;
	if (at)
		return (size_t)(at - line.p);
	/* A name looked like a rule. Nobody shall be able to hide a refusal by that. */
	if (strcmp(field, "rule") == 0 && str_ends(line, STR("\n"))) {
		*ret_rest = "";
		return line.n;
	}
	return 0;
}
