/* Makes the files below a folder read-only for the process that has them open, as an ext4 does that the kernel remounts
 * read-only after a fault of the disk: every write and every sync fails with EROFS; what is mapped stays mapped.
 * (A file system cannot be remounted read-only by hand while a process may write to one of its files.)
 *
 * Loaded into the gateway by LD_PRELOAD. FOLDER is that folder. While the file SWITCH is absent, all is as ever. With the
 * text "now", nothing is written from then on; with "root", from the next write through a descriptor with O_DSYNC on: LMDB
 * writes the root page of a commit through one, behind all its other pages. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *folder, *switch_file;
static atomic_int root_was_refused;

__attribute__((constructor)) static void start(void) {
    folder = getenv("FOLDER");
    switch_file = getenv("SWITCH");
}

/* What the switch says: 'n', 'r', or 0. */
static char switched(void) {
    char first = 0;
    int fd = switch_file ? (int)syscall(SYS_openat, AT_FDCWD, switch_file, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (fd < 0) return 0;
    if (syscall(SYS_read, fd, &first, 1) != 1) first = 0;
    syscall(SYS_close, fd);
    return first;
}

static int refused(int fd) {
    char link[64], path[4096];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t within = strlen(folder);
    if (length <= (ssize_t)within || strncmp(path, folder, within) || path[within] != '/') return 0;
    char now = switched();
    if (now == 'r' && (fcntl(fd, F_GETFL) & O_DSYNC)) root_was_refused = 1;
    if (!now) root_was_refused = 0;
    if (now == 'n' || root_was_refused) {
        errno = EROFS;
        return 1;
    }
    return 0;
}

#define GUARDED(type, name, parameters, ...) \
    type name parameters { return refused(fd) ? -1 : (type)syscall(__VA_ARGS__); }

GUARDED(ssize_t, write, (int fd, const void *bytes, size_t length), SYS_write, fd, bytes, length)
GUARDED(ssize_t, writev, (int fd, const struct iovec *parts, int number), SYS_writev, fd, parts, number)
GUARDED(ssize_t, pwrite, (int fd, const void *bytes, size_t length, off_t at), SYS_pwrite64, fd, bytes, length, at)
GUARDED(ssize_t, pwrite64, (int fd, const void *bytes, size_t length, off_t at), SYS_pwrite64, fd, bytes, length, at)
GUARDED(ssize_t, pwritev, (int fd, const struct iovec *parts, int number, off_t at), SYS_pwritev, fd, parts, number, at, 0)
GUARDED(ssize_t, pwritev64, (int fd, const struct iovec *parts, int number, off_t at), SYS_pwritev, fd, parts, number, at, 0)
GUARDED(int, ftruncate, (int fd, off_t size), SYS_ftruncate, fd, size)
GUARDED(int, ftruncate64, (int fd, off_t size), SYS_ftruncate, fd, size)
GUARDED(int, fsync, (int fd), SYS_fsync, fd)
GUARDED(int, fdatasync, (int fd), SYS_fdatasync, fd)
