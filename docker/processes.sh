# Copyright (C) the ngx_http_xet_module authors

# What runs in a folder of docker/run.sh, for the scripts that read this file
# with "."; $dir is that folder, without links.
#
# Neither server is known by its pid file alone.  Its number may be another's
# by now, most of all in a container, where they are always small; and who
# kills a master leaves its children, which go on.  This works without rights
# to trace others, which root of a container does not have.


is_root()
{
    [ "$(id -u)" -eq 0 ]
}


# A command as the owner of the cluster; away from a folder closed to it.

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


# The master, which has the prefix in DIR among its arguments.

nginx_master()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    case $(title "${pid:-none}") in
    "nginx: master "*" -p $dir/nginx -c "*)
        echo "$pid"
    esac
}


# The master, or what it has left: all are in the session that it began, and
# no process gets the number of a session that there still is.

nginx_pids()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    if [ -z "$pid" ]; then
        return
    fi

    if [ -d "/proc/$pid" ] && [ -z "$(nginx_master)" ]; then

        # a zombie has no title, and may have left some

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


# The postmaster and its children: DIR/pg is the folder that they are in.

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
