/* Tokens of a policy's text. Only the parser includes this. */
#ifndef STEWARD_POLICY_LEXER_H
#define STEWARD_POLICY_LEXER_H

#include "policy/policy.h"

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK };

struct token {
	enum token_kind kind;
	struct str text; /* as written; of a string the part between the quotes, with its escapes */
	unsigned line, column;
};

struct lexer {
	struct str rest;
	unsigned line, column; /* of the first byte of rest */
};

/* False, with a fault, for an unknown character or a string that does not end. */
must_check bool lexer_next(struct lexer *x, struct arena *a, struct token *ret_token, struct policy_fault *ret_fault);

/* Decodes the escapes of a string. With `ret_wild`, '*' is a wildcard: the text stops before it, *ret_wild is true, and
 * *raw continues after it. False, with a fault at the string's place, for an unknown escape. */
must_check bool lexer_unescape(const struct token *t, struct arena *a, struct str *raw, bool *ret_wild,
                               struct str *ret_text, struct policy_fault *ret_fault);

#endif
