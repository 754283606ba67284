#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Nested locations: nginx handles a request in the block of an "if" that is
# true, or of "limit_except".  The settings of the outer location apply in these
# blocks as well: tokens, their scopes, the refusal of subrequests, the routes.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

use IO::Socket::INET;

# Accepts a connection and never responds.

my $sink = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1')
	or die "$!\n";

my $t = Test::Xet->new(workers => 1, log => 'info',
	http => "xet_token_key %%DIR%%/token.key;\n", server => <<'EOF'
location /token/ {
            xet_api;
            xet_auth      token;
            xet_access    store;
            xet_api_base  /token;

            if ($http_x_if) {
                set $within 1;
            }
        }

        location /repo/ {
            xet_api;
            xet_auth      token;
            xet_access    repo;
            xet_api_base  /repo;

            if ($http_x_if) {
                set $within 1;
            }
        }

        location /except/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /except;

            limit_except GET {
                allow  all;
            }
        }

        location /denied/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /denied;

            limit_except GET {
                deny  all;
            }
        }

        location /any/ {
            xet_api;
            xet_auth      token;
            xet_access    store;
            xet_api_base  /any;
            xet_cors      https://app.;
            satisfy       any;
            deny          all;
        }

        location = /mint {
            xet_token;
            xet_token_scope    write;
            xet_token_subject  somebody;

            if ($http_x_if) {
                set $within 1;
            }
        }

        location /asks/ {
            auth_request  /mint;
            root          %%STORE%%;
            try_files     /none =404;
        }

        location /mirrors/ {
            mirror      /token/v1/health;
            proxy_pass  http://127.0.0.1:%%PORT_8080%%/nothing;
        }

        location = /nothing {
            return  204;
        }

        location /proxied/ {
            xet_api;
            xet_auth      token;
            xet_access    store;
            xet_api_base  /proxied;

            if ($http_x_if) {
                return  299 "elsewhere";
            }
        }

        location /after/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /after;
            post_action   @hook;
        }

        location @hook {
EOF
	. '            proxy_pass  http://127.0.0.1:' . $sink->sockport()
	. ";\n        }\n");

$t->write_file('token.key', 'token:t1:' . 'ab' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');
$t->run();

my $data = mix(1, 100000);
my $file = $t->upload($data);
my $x = $file->{xorbs}[0];


# --------------------------------------------------------------------------
# without a token

for my $route ([ 'GET', "v1/reconstructions/$file->{hash}" ],
	[ 'GET', "v1/files/$file->{hash}" ],
	[ 'HEAD', "v1/xorbs/default/$x->{hash}" ],
	[ 'POST', "v1/xorbs/default/$x->{hash}", $x->{bytes} ],
	[ 'POST', 'v1/shards', $file->{shard} ],
	[ 'PUT', 'v1/files', $data ],
	[ 'DELETE', "v1/files/$file->{hash}" ], [ 'DELETE', 'v1/repo' ])
{
	my ($method, $path, $body) = @$route;

	for my $if (undef, 1) {
		is($t->http($method, "/token/$path", { 'X-If' => $if },
			$body ? \$body : undef)->{status}, 401,
			"$method $path: no token" . ($if ? ', if' : ''));
	}

	is($t->http($method, "/repo/$path", { 'X-If' => 1 },
		$body ? \$body : undef)->{status}, 401,
		"$method $path: no token, in a repo");
}

# --------------------------------------------------------------------------
# "limit_except": a request that it admits reaches the routes

for my $route ([ 'POST', "v1/xorbs/default/$x->{hash}", $x->{bytes} ],
	[ 'POST', 'v1/shards', $file->{shard} ],
	[ 'PUT', 'v1/files', $data ])
{
	my ($method, $path, $body) = @$route;

	is($t->http($method, "/except/$path", {}, \$body)->{status}, 200,
		"$method $path: admitted");
	is($t->http($method, "/denied/$path", {}, \$body)->{status}, 403,
		"$method $path: denied");
}

is($t->get("/$_/v1/files/$file->{hash}")->{body}, $data, "/$_: GET")
	for qw/ except denied /;

# --------------------------------------------------------------------------
# "satisfy any" on a route without tokens: a denied caller stays denied

is($t->get('/any/v1/health')->{status}, 403, 'health');
is($t->get('/any/v1/health/live')->{status}, 403, 'health/live');
is($t->http('OPTIONS', '/any/v1/files', { Origin => 'https://app.',
	'Access-Control-Request-Method' => 'PUT' })->{status}, 403,
	'a preflight');

# --------------------------------------------------------------------------
# subrequests

my $if = { 'X-If' => 1 };

is($t->get('/mint', $if)->{status}, 200, 'a token, by a request');
is($t->get('/asks/', $if)->{status}, 403, 'no token by a subrequest');
is($t->get('/mirrors/', $if)->{status}, 204, 'a mirror');
ok($t->wait_log(qr/subrequest rejected: "\/token\/v1\/health/, 1),
	'is refused');

is($t->get('/proxied/v1/health', $if)->{status}, 299,
	'a return in "if"');

# --------------------------------------------------------------------------
# "post_action" would start when a client has disconnected, and reuse a request
# that the module still processes.  It never runs in the module's locations.

{
	my @workers = $t->worker_pids();
	my $lock = $t->pg_lock('xet.files');

	for my $path ("v2/reconstructions/$file->{hash}",
		"v1/files/$file->{hash}")
	{
		my $c = $t->http_start('GET', "/after/$path");

		ok(wait_for(10, sub { $t->pg_blocked() }),
			"after: $path waits");
		$c->abort();
		ok($t->wait_log(qr/prematurely closed.*\/after\/\Q$path\E/),
			"after: $path: the client has left");
	}

	$lock->unlock();

	is($t->get("/after/v1/files/$file->{hash}")->{body}, $data,
		'after: GET');
	is_deeply([ $t->worker_pids() ], \@workers, 'after: the same workers');
	like($t->log(), qr!\[warn\].*ignores "post_action" in .* "/after!,
		'after: a warning in the log');
}

$t->done();
