/* The statement inside of PREPARE ... AS, CREATE ... AS, DECLARE ... FOR, EXPLAIN and COPY (...): the server keeps
 * only the text of the command that carries it, and whoever looks at queries wants the query. Nothing but the C
 * library: the module takes a shape from it, and the service shows it. */
#ifndef STEWARD_MODULE_INNER_H
#define STEWARD_MODULE_INNER_H

/* Where it begins in the text, which may be cut off behind it; the text itself where it carries none. */
const char *steward_inner_statement(char *text);

#endif
