/* Remembers how to undo every write to data.mdb that is not yet on disk, as a power loss would undo it.
 *
 * Loaded into the gateway by LD_PRELOAD. JOURNAL names the file of the journal: records of
 * {offset, length, size of the file before, bytes before}, oldest first. A sync empties it; a write through a
 * descriptor with O_DSYNC is on disk at once. NEVER_SYNCED=1 makes syncs count for nothing: the control, which must
 * lose everything. JOURNAL.count holds how many writes were journalled and how many syncs were seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1, counter = -1, never_synced;
static uint64_t counts[2];

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("JOURNAL");
    if (!path) return;
    char other[4096];
    snprintf(other, sizeof other, "%s.count", path);
    journal = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    counter = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (journal < 0 || counter < 0) abort();
    const char *never = getenv("NEVER_SYNCED");
    never_synced = never && *never == '1';
}

static int is_store(int fd) {
    if (journal < 0) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 8) return 0;
    path[length] = 0;
    return strcmp(path + length - 8, "data.mdb") == 0;
}

static void count(int which) {
    counts[which]++;
    syscall(SYS_pwrite64, counter, counts, sizeof counts, 0);
}

static void put(const void *bytes, size_t length) {
    if (syscall(SYS_write, journal, bytes, length) != (long)length) abort();
}

/* Called with the lock held, before the bytes change. */
static void remember(int fd, uint64_t offset, uint64_t length) {
    struct stat now;
    if (fstat(fd, &now)) abort();
    uint64_t size = (uint64_t)now.st_size;
    uint64_t kept = offset >= size ? 0 : size - offset < length ? size - offset : length;
    uint64_t head[3] = {offset, kept, size};
    char *before = malloc(kept ? kept : 1);
    /* The descriptor may be write-only: read through another one. */
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int reader = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    if (!before || reader < 0) abort();
    for (uint64_t at = 0; at < kept;) {
        long got = syscall(SYS_pread64, reader, before + at, kept - at, offset + at);
        if (got <= 0) abort();
        at += (uint64_t)got;
    }
    syscall(SYS_close, reader);
    put(head, sizeof head);
    put(before, kept);
    free(before);
    count(0);
}

static int lasts(int fd) {
    return !never_synced && (fcntl(fd, F_GETFL) & O_DSYNC);
}

static ssize_t guarded_pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    if (!is_store(fd)) return syscall(SYS_pwrite64, fd, bytes, length, offset);
    pthread_mutex_lock(&lock);
    if (lasts(fd)) count(1); else remember(fd, (uint64_t)offset, length);
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, length, offset);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return guarded_pwrite(fd, bytes, length, offset); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) { return guarded_pwrite(fd, bytes, length, offset); }

static ssize_t guarded_pwritev(int fd, const struct iovec *parts, int number, off_t offset) {
    if (!is_store(fd)) return syscall(SYS_pwritev, fd, parts, number, offset, 0);
    size_t length = 0;
    for (int i = 0; i < number; i++) length += parts[i].iov_len;
    pthread_mutex_lock(&lock);
    if (lasts(fd)) count(1); else remember(fd, (uint64_t)offset, length);
    ssize_t done = syscall(SYS_pwritev, fd, parts, number, offset, 0);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwritev(int fd, const struct iovec *parts, int number, off_t offset) { return guarded_pwritev(fd, parts, number, offset); }
ssize_t pwritev64(int fd, const struct iovec *parts, int number, off_t offset) { return guarded_pwritev(fd, parts, number, offset); }

ssize_t write(int fd, const void *bytes, size_t length) {
    if (!is_store(fd)) return syscall(SYS_write, fd, bytes, length);
    pthread_mutex_lock(&lock);
    if (lasts(fd)) count(1); else remember(fd, (uint64_t)lseek(fd, 0, SEEK_CUR), length);
    ssize_t done = syscall(SYS_write, fd, bytes, length);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
    if (!is_store(fd)) return syscall(SYS_writev, fd, parts, number);
    size_t length = 0;
    for (int i = 0; i < number; i++) length += parts[i].iov_len;
    pthread_mutex_lock(&lock);
    if (lasts(fd)) count(1); else remember(fd, (uint64_t)lseek(fd, 0, SEEK_CUR), length);
    ssize_t done = syscall(SYS_writev, fd, parts, number);
    pthread_mutex_unlock(&lock);
    return done;
}

static int guarded_truncate(int fd, off_t size) {
    if (!is_store(fd)) return (int)syscall(SYS_ftruncate, fd, size);
    struct stat now;
    pthread_mutex_lock(&lock);
    if (fstat(fd, &now)) abort();
    /* Bytes beyond the new end go; bytes that appear are zeros. */
    remember(fd, (uint64_t)size, (uint64_t)(now.st_size > size ? now.st_size - size : 0));
    int done = (int)syscall(SYS_ftruncate, fd, size);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate(int fd, off_t size) { return guarded_truncate(fd, size); }
int ftruncate64(int fd, off_t size) { return guarded_truncate(fd, size); }

static int guarded_sync(int fd, long call) {
    if (!is_store(fd)) return (int)syscall(call, fd);
    pthread_mutex_lock(&lock);
    int done = (int)syscall(call, fd);
    if (done == 0) {
        count(1);
        if (!never_synced) syscall(SYS_ftruncate, journal, 0);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

int fdatasync(int fd) { return guarded_sync(fd, SYS_fdatasync); }
int fsync(int fd) { return guarded_sync(fd, SYS_fsync); }
