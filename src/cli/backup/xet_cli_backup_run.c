
/*
 * Functions that backup and restore share: they check the operand, run
 * PostgreSQL programs, take the readers lock, and update the rows of healed
 * xorbs.
 */


#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xet_cli_backup.h"


#define XET_CLI_BACKUP_ARGS   16
#define XET_CLI_BACKUP_HEALS  40       /* attempts, at most 3 s each */


/* Secrets for a program that connects to PostgreSQL. */

typedef struct {
    char  *password;                   /* NULL: none */
    int    service;                    /* memfd with a service file, or -1 */
} xet_cli_backup_secrets_t;


static int xet_cli_backup_secrets(xet_cli_backup_secrets_t *s,
    const char *service);
static void xet_cli_backup_exec(char *const *argv, int in, int out,
    const xet_cli_backup_secrets_t *secrets);
static int xet_cli_backup_wait(pid_t pid, const char *name);


int
xet_cli_backup_operand(const char *name, const char *instead)
{
    return (strcmp(name, "-") != 0)
           ? XET_CLI_OK : xet_cli_failf(XET_CLI_USAGE, name,
                                        "is not a folder; %s", instead);
}


int
xet_cli_backup_run(const char *const *argv, int in, int out, xet_cli_pg_t *pg)
{
    int                        rc, n;
    char                      *string, *service;
    pid_t                      pid;
    const char                *all[XET_CLI_BACKUP_ARGS + 4];
    xet_cli_backup_secrets_t   secrets;

    for (n = 0; argv[n] && n < XET_CLI_BACKUP_ARGS; n++) {
        all[n] = argv[n];
    }

    service = NULL;
    secrets.password = NULL;
    secrets.service = -1;

    string = xet_cli_pg_string(pg, &secrets.password, &service);

    rc = string ? xet_cli_backup_secrets(&secrets, service) : XET_CLI_ERROR;

    all[n++] = "-w";
    all[n++] = "-d";
    all[n++] = string;
    all[n] = NULL;

    if (rc == XET_CLI_OK) {
        fflush(NULL);
        pid = fork();

        if (pid == 0) {
            xet_cli_backup_exec((char *const *) all, in, out, &secrets);
        }

        rc = (pid < 0) ? xet_cli_fail_errno(argv[0])
                       : xet_cli_backup_wait(pid, argv[0]);
    }

    if (secrets.service >= 0) {
        close(secrets.service);
    }

    free(string);
    free(service);
    free(secrets.password);

    return rc;
}


/*
 * Creates the service file for secrets that libpq does not read from the
 * environment.  A memfd has no name that other users could open, and vanishes
 * when its last descriptor is closed.
 */

static int
xet_cli_backup_secrets(xet_cli_backup_secrets_t *s, const char *service)
{
    if (service == NULL) {
        return XET_CLI_OK;
    }

    s->service = memfd_create("xet", MFD_CLOEXEC);

    if (s->service < 0) {
        return xet_cli_fail_errno("memfd_create");
    }

    return xet_cli_output_write(s->service, "service",
                                (const uint8_t *) service, strlen(service));
}


/*
 * Runs in the child process.  With PR_SET_PDEATHSIG the program ends when xet
 * ends.
 */

static void
xet_cli_backup_exec(char *const *argv, int in, int out,
    const xet_cli_backup_secrets_t *secrets)
{
    char  path[32];

    (void) prctl(PR_SET_PDEATHSIG, SIGTERM);

    signal(SIGPIPE, SIG_DFL);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", secrets->service);

    if (argv[0] != NULL && unsetenv("XET_POSTGRES") == 0
        && (in < 0 || dup2(in, STDIN_FILENO) >= 0)
        && dup2((out < 0) ? STDERR_FILENO : out, STDOUT_FILENO) >= 0
        && (secrets->password == NULL
            || setenv("PGPASSWORD", secrets->password, 1) == 0)
        && (secrets->service < 0
            || (fcntl(secrets->service, F_SETFD, 0) == 0
                && setenv("PGSERVICEFILE", path, 1) == 0)))
    {
        execvp(argv[0], argv);
    }

    _exit((errno == ENOENT) ? 127 : 126);
}


static int
xet_cli_backup_wait(pid_t pid, const char *name)
{
    int    status;
    pid_t  n;

    for ( ;; ) {
        n = waitpid(pid, &status, 0);

        if (n == pid) {
            break;
        }

        if (errno != EINTR) {
            return xet_cli_fail_errno(name);
        }

        if (xet_cli_interrupted) {
            (void) kill(pid, SIGTERM);
        }
    }

    if (xet_cli_interrupted) {
        return XET_CLI_INTERRUPTED;
    }

    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return xet_cli_fail(XET_CLI_ERROR, name, "command not found");
    }

    return (WIFEXITED(status) && WEXITSTATUS(status) == 0)
           ? XET_CLI_OK : xet_cli_fail(XET_CLI_ERROR, name, "failed");
}


int
xet_cli_backup_reads(xet_store_t *storage)
{
    int  had;

    return xet_cli_storage_lock(storage, XET_CLI_BACKUP_READERS, 0, &had);
}


int
xet_cli_backup_heal(xet_cli_pg_t *pg, uint32_t old_copy_id,
    const xet_cli_copy_t *copy, const xet_xorb_info_t *info,
    uint32_t *the_copy_id)
{
    int                        rc, i;
    uint64_t                   stands;
    const xet_cli_pg_param_t  *params;

    params = xet_cli_pg_with(
        xet_cli_as_hash(&copy->hash),
        xet_cli_as_bytes(info->stored_ends, 4 * (size_t) info->chunk_count),
        xet_cli_as_number(copy->size),
        xet_cli_as_copy_id(copy->copy_id),
        xet_cli_as_bytes(copy->digested ? copy->digest.bytes : NULL,
                         copy->digested ? XET_CHECKSUM_LEN : 0),
        xet_cli_as_copy_id(old_copy_id));

    for (i = 0; i < XET_CLI_BACKUP_HEALS && !xet_cli_interrupted; i++) {
        stands = UINT64_MAX;

        rc = xet_cli_pg_number(pg, "SELECT t FROM xet.xorb_healed($1, $2,"
                               " $3::bigint, $4::integer, $5, $6::integer) t"
                               " WHERE t IS NOT NULL", params, &stands);

        if (rc != XET_CLI_OK || stands != UINT64_MAX) {
            *the_copy_id = (uint32_t) stands;
            return rc;
        }
    }

    return xet_cli_interrupted
           ? XET_CLI_INTERRUPTED
           : xet_cli_fail(XET_CLI_ERROR, "postgres",
                          "cannot heal a xorb: other sessions keep it or its "
                          "files locked");
}
