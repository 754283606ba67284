# Copyright (C) the ngx_http_xet_module authors

# Functions that find the processes that docker/run.sh has started in a folder,
# for scripts that source this file; $dir is the folder, with symlinks resolved.
#
# A pid file alone does not identify a server: the pid may by now belong to
# another process, above all in a container, where pids are small.  Also, the
# children of a killed master keep running.  The functions work without
# permission to trace other processes, which root may lack in a container.


is_root()
{
    [ "$(id -u)" -eq 0 ]
}


# Runs a command as the owner of the cluster, in a folder that the owner can
# enter.

as_pg()
{
    if is_root; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}


title()
{
    { tr '\0' ' ' < "/proc/$1/cmdline"; } 2>/dev/null || :
}


# Prints the pid of the nginx master; its arguments contain the prefix in DIR.

nginx_master()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    case $(title "${pid:-none}") in
    "nginx: master "*" -p $dir/nginx -c "*)
        echo "$pid"
    esac
}


# Prints the pids of the nginx master and its children, or of the children of a
# dead master.  All are in the session that the master created, and a new
# process never gets the id of an existing session.

nginx_pids()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    if [ -z "$pid" ]; then
        return
    fi

    if [ -d "/proc/$pid" ] && [ -z "$(nginx_master)" ]; then

        # a zombie has no title, and its children may still run

        [ -z "$(title "$pid")" ] || return 0
    fi

    cat /proc/[0-9]*/stat 2>/dev/null \
        | sed 's/^\([0-9]*\) (.*) /\1 /' \
        | while read -r one _ _ _ session _; do
              [ "$session" = "$pid" ] || continue

              case $(title "$one") in "nginx: "*)
                  echo "$one"
              esac
          done
}


# Prints the pids of the postmaster and its children, whose working directory is
# DIR/pg.

pg_pids()
{
    as_pg find /proc/[0-9]*/cwd -maxdepth 0 -lname "$dir/pg" 2>/dev/null \
        | cut -d / -f 3
}


pg_master()
{
    pid=$(as_pg sed -n 1p "$dir/pg/postmaster.pid" 2>/dev/null || :)

    [ -z "$pid" ] || pg_pids | grep -xF "$pid" || :
}
