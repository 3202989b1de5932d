/* On the endpoint of a federated instance: what queries read from stores is counted and bounded, and each query
 * that has read is written down. On every other server nothing of it does anything. */
#ifndef STEWARD_MODULE_FEDERATION_H
#define STEWARD_MODULE_FEDERATION_H

#include <postgres.h>

#include <executor/execdesc.h>

struct federated;

void federation_define(void);
/* Around the statements of clients, those inside of others excepted: a portal runs in several turns. */
void federation_begun(QueryDesc *q);
struct federated *federation_enter(QueryDesc *q);
void federation_leave(QueryDesc *q, struct federated *before);
void federation_failed(QueryDesc *q); /* while the error is under way */
void federation_ended(QueryDesc *q);
/* Bytes that came from a store. Ends the query where a limit says so. */
void federation_read(uint64 bytes);

#endif
