/* Telling the service manager how far the service is: systemd's Type=notify, without its library. */
#ifndef STEWARD_BASE_NOTIFY_H
#define STEWARD_BASE_NOTIFY_H

#include <stdbool.h>

/* Whether somebody who started the service waits to hear of it. */
bool notify_is_wanted(void);
/* "READY=1", "STOPPING=1", ...; nothing where nobody waits. */
void notify_send(const char *state);

#endif
