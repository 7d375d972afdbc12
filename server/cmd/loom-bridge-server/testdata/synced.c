// A library for LD_PRELOAD that appends a line to the file that SYNCED_FILES names for
// each file that is synced: how many bytes it had when the sync began, and its path.
// Only what calls the C library is seen: RocksDB, not the Go program around it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int synced(const char *name, int fd) {
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int known = fstat(fd, &before) == 0;
    int result = sync(fd);
    if (result != 0 || !known || !S_ISREG(before.st_mode)) {
        return result;
    }
    char link[64], path[PATH_MAX], line[PATH_MAX + 64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) {
        abort();
    }
    path[length] = 0;
    int size = snprintf(line, sizeof line, "%lld %s\n", (long long)before.st_size, path);
    int to = open(getenv("SYNCED_FILES"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (to < 0 || write(to, line, size) != size) {
        abort();
    }
    close(to);
    return result;
}

int fsync(int fd) { return synced("fsync", fd); }

int fdatasync(int fd) { return synced("fdatasync", fd); }
