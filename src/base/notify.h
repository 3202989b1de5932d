/* Reports the service's state to the service manager: systemd's Type=notify, without its library. */
#ifndef STEWARD_BASE_NOTIFY_H
#define STEWARD_BASE_NOTIFY_H

#include <stdbool.h>

/* Whether a service manager waits for our state. */
bool notify_is_wanted(void);
/* Sends "READY=1", "STOPPING=1", ...; does nothing without a service manager. */
void notify_send(const char *state);

#endif
