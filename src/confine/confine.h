/* What a helper program gives up before it reads its first byte. The programs beside the service (steward-saml,
 * steward-token) are there because foreign code reads what strangers send: a fault of that code shall get nothing that
 * the service has. Attack found the SAML verifier with all capabilities of the service and every system call.
 *
 * A program loads what it needs (libraries, their configuration), calls one of these, and only then reads its input.
 * They never return when a part of it fails: a program that cannot be confined does not work. */
#ifndef STEWARD_CONFINE_CONFINE_H
#define STEWARD_CONFINE_CONFINE_H

#include <stdint.h>

struct confine_bounds {
	uint64_t memory;  /* bytes of address space; 0: as many as there are */
	unsigned seconds; /* of a processor; 0: without end */
	unsigned files;   /* open descriptors; 0: as many as the service may have */
};

/* For a program that computes an answer from its standard input, and writes it to its standard output. What is left:
 * the descriptors 0 and 1 (2 is /dev/null), memory, clocks and random bytes. No file can be opened, nothing started, no
 * socket made, no other process seen: the list of system calls has none of these. Where the caller may change its user,
 * it becomes nobody. */
void confine_to_pipes(const struct confine_bounds *bounds);

/* For a program that has made one connection and talks over it, as over its pipes: the same, with that descriptor left
 * and with waiting for it. */
void confine_to_connection(const struct confine_bounds *bounds, int connection);

/* For a program that loads a module of the operator's, which opens files and devices, talks to a server and has
 * threads: it keeps its user, because the token's files are that user's, and most system calls. It loses all
 * capabilities, every way to get any, and the system calls that reach other processes' memory or the kernel's settings.
 */
void confine_with_module(const struct confine_bounds *bounds);

#endif
