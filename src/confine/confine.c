/* Rights are given up in an order in which each step can still be taken: descriptors, user, capabilities, limits, then
 * no_new_privs and the filter of system calls. The filters are tables of numbers for the architecture that the program
 * is built for; names that an architecture does not have are left out. */
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter of system calls is known for x86-64 and arm64"
#endif

#define NOBODY 65534 /* on every Linux: the user that owns nothing */
#define REFUSED 126  /* the program's end when a step fails */
#define X32_BIT 0x40000000u
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define FILTER_MAX 256

static const unsigned pipe_calls[] = {
        __NR_read,
        __NR_write,
        __NR_readv,
        __NR_writev,
        __NR_close,
        __NR_recvmsg,
        __NR_sendmsg,
        __NR_recvfrom,
        __NR_sendto,
        __NR_lseek,
        __NR_fstat,
        __NR_brk,
        __NR_mmap,
        __NR_munmap,
        __NR_mprotect,
        __NR_mremap,
        __NR_madvise,
        __NR_futex,
        __NR_rt_sigaction,
        __NR_rt_sigprocmask,
        __NR_rt_sigreturn,
        __NR_sigaltstack,
        __NR_getpid,
        __NR_gettid,
        __NR_clock_gettime,
        __NR_gettimeofday,
        __NR_clock_getres,
        __NR_getrandom,
        __NR_sched_yield,
        __NR_sched_getaffinity,
        __NR_clock_nanosleep,
        __NR_nanosleep,
        __NR_exit,
        __NR_exit_group,
        __NR_restart_syscall,
#ifdef __NR_time
        __NR_time,
#endif
};

/* To wait for what a connection brings. */
static const unsigned waiting_calls[] = {
        __NR_ppoll,
        __NR_getsockopt,
#ifdef __NR_poll
        __NR_poll,
#endif
};

/* What reaches other processes, other places of the file system, or the kernel itself. */
static const unsigned module_refused[] = {
        __NR_ptrace,
        __NR_process_vm_readv,
        __NR_process_vm_writev,
        __NR_pidfd_getfd,
        __NR_kcmp,
        __NR_mount,
        __NR_umount2,
        __NR_pivot_root,
        __NR_chroot,
        __NR_move_mount,
        __NR_open_tree,
        __NR_fsopen,
        __NR_fsmount,
        __NR_unshare,
        __NR_setns,
        __NR_bpf,
        __NR_perf_event_open,
        __NR_userfaultfd,
        __NR_init_module,
        __NR_finit_module,
        __NR_delete_module,
        __NR_kexec_load,
        __NR_reboot,
        __NR_swapon,
        __NR_swapoff,
        __NR_settimeofday,
        __NR_clock_settime,
        __NR_adjtimex,
        __NR_clock_adjtime,
        __NR_sethostname,
        __NR_setdomainname,
        __NR_acct,
        __NR_quotactl,
        __NR_syslog,
        __NR_add_key,
        __NR_request_key,
        __NR_keyctl,
        __NR_open_by_handle_at,
        __NR_personality,
};

static void must(bool done)
{
	if (!done)
		_exit(REFUSED);
}

/* Descriptors of the service are closed when a program begins; this holds it for those that a later change forgets.
 * `left`: one that stays, or -1. */
static void descriptors_close(int left)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	must(null >= 0 && dup2(null, STDERR_FILENO) == STDERR_FILENO);
	must(left <= 3 || close_range(3, (unsigned)left - 1, 0) == 0);
	must(close_range(left < 3 ? 3 : (unsigned)left + 1, ~0U, 0) == 0);
}

static bool may_change_user(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {{0}};
	must(syscall(SYS_capget, &head, sets) == 0);
	unsigned wanted = 1u << CAP_SETUID | 1u << CAP_SETGID;
	return (sets[0].effective & wanted) == wanted;
}

static void user_leave(void)
{
	if (!may_change_user())
		return;
	must(syscall(SYS_setgroups, 0, NULL) == 0);
	must(syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0);
	must(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0);
}

/* Only who has CAP_SETPCAP empties the bounding set, so it is done before root becomes another; with no_new_privs
 * nothing is gained out of it either way. */
static void bounding_set_drop(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)!prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* A user other than root keeps its capabilities when it becomes a third one, so all sets are emptied by name. */
static void capabilities_drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0);
	must(syscall(SYS_capset, &head, none) == 0);
}

static void limit_set(__rlimit_resource_t resource, rlim_t most)
{
	struct rlimit now, wanted = {most, most};
	must(getrlimit(resource, &now) == 0);
	if (now.rlim_max < most)
		wanted.rlim_cur = wanted.rlim_max = now.rlim_max;
	must(setrlimit(resource, &wanted) == 0);
}

static void limits_set(const struct confine_bounds *bounds)
{
	limit_set(RLIMIT_CORE, 0);
	if (bounds->seconds)
		limit_set(RLIMIT_CPU, bounds->seconds);
	if (bounds->files)
		limit_set(RLIMIT_NOFILE, bounds->files);
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any memory */
	if (bounds->memory)
		limit_set(RLIMIT_AS, bounds->memory);
#endif
}

/* `when`: what follows for a call of the list; `otherwise`: for all others. A program of another architecture, which
 * has other numbers, is killed. */
static void filter_set(const unsigned *calls, size_t count, unsigned when, unsigned otherwise)
{
	struct sock_filter code[FILTER_MAX];
	unsigned short n = 0;
	must(count * 2 + 8 <= FILTER_MAX);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, when);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	struct sock_fprog program = {n, code};
	/* Not seccomp(): the unit's own filter does not have that call. */
	must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void rights_drop(const struct confine_bounds *bounds)
{
	capabilities_drop();
	limits_set(bounds);
	must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void all_but_pipes_drop(const struct confine_bounds *bounds, int connection)
{
	descriptors_close(connection);
	bounding_set_drop();
	user_leave();
	limit_set(RLIMIT_FSIZE, 0);
	rights_drop(bounds);
}

void confine_to_pipes(const struct confine_bounds *bounds)
{
	all_but_pipes_drop(bounds, -1);
	/* A refused call fails as if a file were not there, which the libraries live with: what they try varies between
	 * their versions. */
	filter_set(pipe_calls, COUNT(pipe_calls), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
}

void confine_to_connection(const struct confine_bounds *bounds, int connection)
{
	unsigned calls[COUNT(pipe_calls) + COUNT(waiting_calls)];
	memcpy(calls, pipe_calls, sizeof pipe_calls);
	memcpy(calls + COUNT(pipe_calls), waiting_calls, sizeof waiting_calls);
	all_but_pipes_drop(bounds, connection);
	filter_set(calls, COUNT(calls), SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM);
}

void confine_with_module(const struct confine_bounds *bounds)
{
	descriptors_close(-1);
	bounding_set_drop();
	rights_drop(bounds);
	filter_set(module_refused, COUNT(module_refused), SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
}
