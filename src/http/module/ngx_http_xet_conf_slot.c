
/*
 * Setters that work like nginx's setters, but also record the line of the
 * directive.  The setter for enumerations lists the allowed words in its error
 * message.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_WORDS_MAX  256


static char *ngx_http_xet_conf_recorded(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf, char *rv);


char *
ngx_http_xet_conf_str(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_xet_conf_recorded(cf, cmd, conf,
                                      ngx_conf_set_str_slot(cf, cmd, conf));
}


char *
ngx_http_xet_conf_num(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_xet_conf_recorded(cf, cmd, conf,
                                      ngx_conf_set_num_slot(cf, cmd, conf));
}


char *
ngx_http_xet_conf_size(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_xet_conf_recorded(cf, cmd, conf,
                                      ngx_conf_set_size_slot(cf, cmd, conf));
}


static char *
ngx_http_xet_conf_recorded(ngx_conf_t *cf, ngx_command_t *cmd, void *conf,
    char *rv)
{
    return (rv == NGX_CONF_OK) ? ngx_http_xet_conf_keep(cf, cmd, conf) : rv;
}


char *
ngx_http_xet_conf_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *p = conf;

    u_char            words[NGX_HTTP_XET_WORDS_MAX], *w;
    ngx_str_t        *value;
    ngx_uint_t       *np, i;
    ngx_conf_enum_t  *e;

    np = (ngx_uint_t *) (p + cmd->offset);

    if (*np != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;
    e = cmd->post;
    w = words;

    for (i = 0; e[i].name.len; i++) {

        if (e[i].name.len == value[1].len
            && ngx_strcasecmp(e[i].name.data, value[1].data) == 0)
        {
            *np = e[i].value;
            return ngx_http_xet_conf_keep(cf, cmd, conf);
        }

        w = ngx_slprintf(w, words + sizeof(words), "%s\"%V\"",
                         (i == 0) ? "" : e[i + 1].name.len ? ", " : " or ",
                         &e[i].name);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" in \"%V\" directive, "
                       "it must be %*s", &value[1], &cmd->name,
                       (size_t) (w - words), words);

    return NGX_CONF_ERROR;
}
