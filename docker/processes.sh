# Copyright (C) the ngx_http_xet_module authors

# Finds the processes of a folder of docker/run.sh, for scripts that read this
# file with "."; $dir is that folder, without links.
#
# A pid file alone does not identify a server: the pid may belong to another
# process by now, above all in a container, where pids are small.  Besides, the
# children of a killed master keep running.  No permission to trace other
# processes is needed, since root in a container may lack it.


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


# The master; its arguments contain the prefix in DIR.

nginx_master()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    case $(title "${pid:-none}") in
    "nginx: master "*" -p $dir/nginx -c "*)
        echo "$pid"
    esac
}


# The master and its children, or the children that it left.  All are in the
# session that the master created, and no new process gets the id of an
# existing session.

nginx_pids()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    if [ -z "$pid" ]; then
        return
    fi

    if [ -d "/proc/$pid" ] && [ -z "$(nginx_master)" ]; then

        # a zombie has no title, and may have left children

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


# The postmaster and its children: their working directory is DIR/pg.

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
