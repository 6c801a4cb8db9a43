/* Calls of the system that fail when a test says so; loaded by LD_PRELOAD.

   A fault is told by `failing_calls_set`, or before the start by the environment variable
   FAILING_CALLS with the same words, separated by tabs:

       call    open, read, write, fsync, rename, ftruncate, unlink, mkdir, flock, close,
               connect, send or recv; variants such as pwrite, fdatasync, renameat2 and openat count
               as the plain call
       path    a part of the file's absolute path, or with a last $ its end; "socket:" for sockets
       nth     from 1: which call with this name and path
       how     fail (with `number`, an errno), short (half of a write or read),
               before, half or after (kill -9 before the call, after half of it or after it),
               signal (`number`, after the call)
       number  errno, or of a signal
       lasting 1: all calls from then on fail

   With FAILING_CALLS_LOG, or `failing_calls_log`, each call that has a path under a given folder, or
   a socket, is written down as "call<tab>path". */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    char call[32], path[PATH_MAX], how[16];
    int nth, number, lasting, count;
} fault;
static int log_descriptor = -1;
static char log_folder[PATH_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* How often the fault has struck. */
int failing_calls_struck;

void failing_calls_set(const char *call, const char *path, int nth, const char *how, int number,
                       int lasting) {
    snprintf(fault.call, sizeof fault.call, "%s", call);
    snprintf(fault.path, sizeof fault.path, "%s", path);
    snprintf(fault.how, sizeof fault.how, "%s", how);
    fault.nth = nth, fault.number = number, fault.lasting = lasting, fault.count = 0;
    failing_calls_struck = 0;
}

void failing_calls_log(const char *file, const char *folder) {
    log_descriptor = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    snprintf(log_folder, sizeof log_folder, "%s", folder);
}

__attribute__((constructor)) static void from_environment(void) {
    const char *given = getenv("FAILING_CALLS");
    char call[32] = "", path[PATH_MAX] = "", how[16] = "";
    int nth = 1, number = 0, lasting = 0;
    if (given && sscanf(given, "%31[^\t]\t%4095[^\t]\t%d\t%15[^\t]\t%d\t%d", call, path, &nth, how,
                        &number, &lasting) == 6)
        failing_calls_set(call, path, nth, how, number, lasting);
}

static int has_part(const char *path, const char *part) {
    size_t own = strlen(path), length = strlen(part);
    if (!length || part[length - 1] != '$') return strstr(path, part) != NULL;
    return own >= length - 1 && !strncmp(path + own - (length - 1), part, length - 1);
}

enum verdict { GO_ON, FAIL, SHORT, HALF, AFTER };

static enum verdict judge(const char *call, const char *path) {
    enum verdict found = GO_ON;
    if (log_descriptor >= 0 && (strstr(path, log_folder) || !strncmp(path, "socket:", 7))) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%s\t%s\n", call, path);
        syscall(SYS_write, log_descriptor, line, length);
    }
    if (!fault.call[0] || strcmp(call, fault.call) || !has_part(path, fault.path)) return GO_ON;
    pthread_mutex_lock(&mutex);
    fault.count++;
    if (fault.count == fault.nth || (fault.count > fault.nth && fault.lasting)) {
        failing_calls_struck++;
        if (!strcmp(fault.how, "before")) kill(getpid(), SIGKILL);
        found = !strcmp(fault.how, "after") || !strcmp(fault.how, "signal") ? AFTER
                : !strcmp(fault.how, "half")                              ? HALF
                : !strcmp(fault.how, "short") && fault.count == fault.nth ? SHORT
                                                                          : FAIL;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static enum verdict judge_name(const char *call, int folder, const char *name) {
    char path[2 * PATH_MAX] = "";
    if (!fault.call[0] && log_descriptor < 0) return GO_ON;
    if (name[0] != '/') {
        char link[64];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, path, PATH_MAX - 1);
        path[length < 0 ? 0 : length] = 0;
        strcat(path, "/");
    }
    strncat(path, name, PATH_MAX - 1);
    return judge(call, path);
}

static enum verdict judge_descriptor(const char *call, int descriptor) {
    char link[64], path[PATH_MAX];
    if (!fault.call[0] && log_descriptor < 0) return GO_ON;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return GO_ON;
    path[length] = 0;
    return judge(call, path);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAILED (errno = fault.number, -1)
/* The end of a call; `whole` is done in any case but FAIL. */
#define END(verdict, type, whole) \
    do { \
        if ((verdict) == FAIL) return FAILED; \
        type result = (whole); \
        if ((verdict) == AFTER || (verdict) == HALF) \
            kill(getpid(), strcmp(fault.how, "signal") ? SIGKILL : fault.number); \
        return result; \
    } while (0)
#define PART(verdict, count) \
    (((verdict) == SHORT || (verdict) == HALF) && (count) > 1 ? (count) / 2 : (count))

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        enum verdict verdict = judge_name("open", AT_FDCWD, path); \
        END(verdict, int, real(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        enum verdict verdict = judge_name("open", folder, path); \
        END(verdict, int, real(folder, path, flags, mode)); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t read(int descriptor, void *data, size_t count) {
    REAL(read);
    enum verdict verdict = judge_descriptor("read", descriptor);
    END(verdict, ssize_t, real(descriptor, data, PART(verdict, count)));
}

ssize_t write(int descriptor, const void *data, size_t count) {
    REAL(write);
    enum verdict verdict = judge_descriptor("write", descriptor);
    END(verdict, ssize_t, real(descriptor, data, PART(verdict, count)));
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(writev);
    enum verdict verdict = judge_descriptor("write", descriptor);
    END(verdict, ssize_t, real(descriptor, parts, PART(verdict, count)));
}

#define AT_OFFSET(name, call, pointer, offset_type) \
    ssize_t name(int descriptor, pointer data, size_t count, offset_type offset) { \
        REAL(name); \
        enum verdict verdict = judge_descriptor(call, descriptor); \
        END(verdict, ssize_t, real(descriptor, data, PART(verdict, count), offset)); \
    }
AT_OFFSET(pread, "read", void *, off_t)
AT_OFFSET(pread64, "read", void *, off64_t)
AT_OFFSET(pwrite, "write", const void *, off_t)
AT_OFFSET(pwrite64, "write", const void *, off64_t)

#define ON_DESCRIPTOR(name, call) \
    int name(int descriptor) { \
        REAL(name); \
        enum verdict verdict = judge_descriptor(call, descriptor); \
        END(verdict, int, real(descriptor)); \
    }
ON_DESCRIPTOR(fsync, "fsync")
ON_DESCRIPTOR(fdatasync, "fsync")

int close(int descriptor) {
    REAL(close);
    enum verdict verdict = judge_descriptor("close", descriptor);
    if (verdict == FAIL) {
        real(descriptor); /* Linux closes it in any case. */
        return FAILED;
    }
    END(verdict, int, real(descriptor));
}

int flock(int descriptor, int operation) {
    REAL(flock);
    enum verdict verdict = judge_descriptor("flock", descriptor);
    END(verdict, int, real(descriptor, operation));
}

#define TRUNCATE(name, length_type) \
    int name(int descriptor, length_type length) { \
        REAL(name); \
        enum verdict verdict = judge_descriptor("ftruncate", descriptor); \
        END(verdict, int, real(descriptor, length)); \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    REAL(rename);
    enum verdict verdict = judge_name("rename", AT_FDCWD, to);
    END(verdict, int, real(from, to));
}

int renameat(int one, const char *from, int other, const char *to) {
    REAL(renameat);
    enum verdict verdict = judge_name("rename", other, to);
    END(verdict, int, real(one, from, other, to));
}

int renameat2(int one, const char *from, int other, const char *to, unsigned flags) {
    REAL(renameat2);
    enum verdict verdict = judge_name("rename", other, to);
    END(verdict, int, real(one, from, other, to, flags));
}

int unlink(const char *path) {
    REAL(unlink);
    enum verdict verdict = judge_name("unlink", AT_FDCWD, path);
    END(verdict, int, real(path));
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    enum verdict verdict = judge_name("unlink", folder, path);
    END(verdict, int, real(folder, path, flags));
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    enum verdict verdict = judge_name("mkdir", AT_FDCWD, path);
    END(verdict, int, real(path, mode));
}

int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    REAL(connect);
    enum verdict verdict = judge_descriptor("connect", descriptor);
    END(verdict, int, real(descriptor, address, length));
}

ssize_t send(int descriptor, const void *data, size_t count, int flags) {
    REAL(send);
    enum verdict verdict = judge_descriptor("send", descriptor);
    END(verdict, ssize_t, real(descriptor, data, PART(verdict, count), flags));
}

ssize_t recv(int descriptor, void *data, size_t count, int flags) {
    REAL(recv);
    enum verdict verdict = judge_descriptor("recv", descriptor);
    END(verdict, ssize_t, real(descriptor, data, PART(verdict, count), flags));
}
