/* Control: an engine that does as the test control says, so that tests see slow changes, failures and old minor
 * versions whenever they want to. */
#ifndef STEWARD_ENGINE_CONTROL_H
#define STEWARD_ENGINE_CONTROL_H

#include <stdint.h>

struct engine;

/* The changes that can be told to fail. */
#define ENGINE_CHANGES "create|update|delete|sample|access|snapshot|restore|drill|index|search|archive|table|federation"

struct engine_control_ops {
	/* Seconds that a creation takes from now on; less for other changes. */
	void (*seconds)(struct engine *e, double seconds);
	/* The change that shall fail so many times, in place of the one before; NULL: none. */
	void (*fail)(struct engine *e, const char *change, unsigned times);
	/* The newest minor version is so many above the first one. */
	void (*patch)(struct engine *e, unsigned patch);
	/* The repository of that region is away from now on, in place of the one before; NULL: none. */
	void (*away)(struct engine *e, const char *region);
	/* Downloads of snapshots have a file of so many bytes beside; 0: none. */
	void (*download)(struct engine *e, uint64_t bytes);
	/* Seconds, failures, repositories and downloads as at the start. */
	void (*standard)(struct engine *e);
};

#endif
