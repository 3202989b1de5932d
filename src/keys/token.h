/* What the service and steward-token say to each other: a packet for each question and one for its answer, a header
 * and the bytes that are wrapped or unwrapped behind it. Both programs are built together. */
#ifndef STEWARD_KEYS_TOKEN_H
#define STEWARD_KEYS_TOKEN_H

#define TOKEN_NONCE 12
#define TOKEN_PLAIN 32
#define TOKEN_TAG 16
#define TOKEN_SEALED (TOKEN_PLAIN + TOKEN_TAG)
#define TOKEN_LABEL 65 /* with its end */
#define TOKEN_PIN 256

enum token_task {
	TOKEN_LOAD,  /* only whether the module can be loaded */
	TOKEN_WRAP,  /* TOKEN_PLAIN bytes become TOKEN_SEALED */
	TOKEN_UNWRAP /* the other way round */
};

struct token_question {
	enum token_task task;
	char key[TOKEN_LABEL], project[25], pin[TOKEN_PIN];
	unsigned char nonce[TOKEN_NONCE];
};

/* After any but the first the program ends. */
enum token_result {
	TOKEN_GOOD,
	TOKEN_AWAY,
	TOKEN_KEY_REFUSED, /* it is not there, may not be used so, or is another one */
	TOKEN_PIN_REFUSED, /* the token was given the PIN, and counts that */
	TOKEN_PIN_SHUT     /* it was not given the PIN: the token is locked, or one failure away from it */
};

struct token_answer {
	enum token_result result;
	char why[200];
	unsigned char nonce[TOKEN_NONCE]; /* some tokens choose it themselves */
};

#endif
