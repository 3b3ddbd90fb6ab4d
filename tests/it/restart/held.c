/* A disk that takes nothing for a while: no sync returns as long as the file HELD exists.
 *
 * Loaded into the gateway by LD_PRELOAD. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_disk(void) {
    const char *held = getenv("HELD");
    while (held && access(held, F_OK) == 0) usleep(1000);
}

int fsync(int fd) {
    wait_for_disk();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_for_disk();
    return (int)syscall(SYS_fdatasync, fd);
}
