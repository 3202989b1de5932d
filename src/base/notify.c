/* Sends one datagram to the socket that NOTIFY_SOCKET names. A name that begins with '@' is in Linux's abstract
 * namespace. */
#include "base/notify.h"

#include "base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool notify_is_wanted(void)
{
	return getenv("NOTIFY_SOCKET") != NULL;
}

void notify_send(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = name ? strlen(name) : 0;
	if (n < 2 || n >= sizeof to.sun_path)
		return;
	memcpy(to.sun_path, name, n);
	if (name[0] == '@')
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, size) < 0)
		log_warn("the service manager could not be told %s: %s", state, strerror(errno));
	if (fd >= 0)
		close(fd);
}
