#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# CORS: off by default, one allowed origin, a map of origins, and all origins.
# The test checks which responses of the API and of the data a page may read,
# and that a preflight request reveals nothing else.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

my $t = Test::Xet->new(log => 'info', http => <<'EOH', server => <<'EOF');
map $http_origin $allowed {
        default              off;
        https://hub.example  $http_origin;
        ~^https://[a-z]+\.lab\.example$  $http_origin;
    }

    xet_token_key  %%DIR%%/token.key;
EOH
location /one/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /one;
            xet_cors      https://hub.example;
        }

        location /map/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /map;
            xet_cors      $allowed;
        }

        location /token/ {
            xet_api;
            xet_auth      token;
            xet_access    store;
            xet_api_base  /token;
            xet_cors      $allowed;
        }

        location /empty/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /empty;
            xet_cors      $arg_origin;
        }
EOF

$t->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/token.key');

# a second server with the same store, whose data is open to a map of origins

$t->write_conf(Test::Xet::default_conf() =~ s!\}\s*\z!<<'EOC'!er);
    server {
        listen       127.0.0.1:%%PORT_8081%%;
        server_name  localhost;

        xet_cors     $allowed;

        %%LOCATIONS%%

        location /off/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /off;
            xet_cors      off;
        }
    }
}
EOC

$t->run();
$t->fds_mark();

my $file = $t->upload(mix(1, 200000), xorb_chunks => 100);
my $none = '0123456789abcdef' x 4;
my $hub = 'https://hub.example';

my @allowed = map { "Access-Control-Allow-$_" }
	qw/ Origin Methods Headers Credentials /;

# Returns the CORS headers of a response.

sub cors {
	my ($r) = @_;

	return { map { $_ => scalar $r->header_value($_) }
		grep { defined $r->header_value($_) } @allowed,
		map { "Access-Control-$_" } qw/ Expose-Headers Max-Age / };
}

sub preflight {
	my ($uri, $origin, %o) = @_;

	return $t->http('OPTIONS', $uri, {
		defined $origin ? (Origin => $origin) : (),
		'Access-Control-Request-Method' => $o{method} || 'GET',
		'Access-Control-Request-Headers' => 'authorization,range'
	}, undef, port => $o{port});
}

sub is_preflight {
	my ($r, $origin, $name) = @_;

	is($r->{status}, 204, "$name: status");
	is($r->{body}, '', "$name: no body");
	is($r->header_value('Access-Control-Allow-Origin'), $origin,
		"$name: origin");
	is_deeply($r->{headers}{vary}, $origin eq '*' ? undef : [ 'Origin' ],
		"$name: Vary");
	is($r->header_value('Access-Control-Allow-Credentials'), undef,
		"$name: no credentials");
	like($r->header_value('Access-Control-Max-Age'), qr/\A[1-9]\d*\z/,
		"$name: Max-Age");

	my %methods = map { $_ => 1 } split(/, /,
		$r->header_value('Access-Control-Allow-Methods'));
	my %headers = map { lc($_) => 1 } split(/, /,
		$r->header_value('Access-Control-Allow-Headers'));

	is(join(' ', grep { !$methods{$_} } qw/ GET HEAD POST PUT
		DELETE /), '',
		"$name: methods");
	is(join(' ', grep { !$headers{$_} } qw/ authorization range
		x-range-dirty x-xet-session-id content-type /), '',
		"$name: headers");
}

# Checks for no CORS headers, and for Vary, which tells caches that other
# origins may be allowed.

sub is_none {
	my ($r, $status, $name, $vary) = @_;

	is($r->{status}, $status, "$name: status");
	is_deeply(cors($r), {}, "$name: no CORS headers");
	is_deeply($r->{headers}{vary}, $vary, "$name: Vary");
}

# Checks that the origin is allowed, and that a page can read the headers that
# it needs.

sub is_open {
	my ($r, $status, $origin, $name) = @_;

	is($r->{status}, $status, "$name: status") or diag($r->{body});
	is($r->header_value('Access-Control-Allow-Origin'), $origin,
		"$name: origin");

	my %exposed = map { lc($_) => 1 } split(/, /,
		$r->header_value('Access-Control-Expose-Headers') // '');

	is(join(' ', grep { !$exposed{$_} } qw/ content-range etag
		content-disposition repr-digest retry-after x-request-id
		accept-ranges /), '',
		"$name: exposed");
}

# --------------------------------------------------------------------------
# off by default

my $recon = "v2/reconstructions/$file->{hash}";

my @vary = ([ 'Origin' ]);

for my $case ([ '/api' ], [ '/empty', @vary ]) {
	my ($base, @more) = @$case;

	is_none($t->get("$base/$recon", { Origin => $hub }), 200,
		"$base: GET", @more);
	is_none($t->get("$base/v1/nothing", { Origin => $hub }), 404,
		"$base: no route", @more);
	is_none(preflight("$base/$recon", $hub), 405, "$base: OPTIONS",
		@more);
}

is_none($t->get("/off/$recon", { Origin => $hub }, port => 8081), 200,
	'off in a server with it: GET');
is_none(preflight("/off/$recon", $hub, port => 8081), 405,
	'off in a server with it: OPTIONS');

# --------------------------------------------------------------------------
# one allowed origin: the header names it whatever the request's origin is, and
# the browser compares the two origins

for my $origin ($hub, 'https://evil.example', 'null', undef) {
	my $name = 'one origin, ' . ($origin // 'none');

	is_preflight(preflight("/one/$recon", $origin), $hub,
		"$name: OPTIONS");
	is_open($t->get("/one/$recon", { defined $origin
		? (Origin => $origin) : () }), 200, $hub, "$name: GET");
}

# --------------------------------------------------------------------------
# a map

for my $origin ($hub, 'https://a.lab.example') {
	is_preflight(preflight("/map/$recon", $origin), $origin,
		"map, $origin: OPTIONS");
	is_open($t->get("/map/$recon", { Origin => $origin }), 200, $origin,
		"map, $origin: GET");
}

for my $origin ('https://hub.example.evil', 'http://hub.example', 'null',
	'https://a.b.lab.example', '*', 'off', '', undef)
{
	my $name = 'map, ' . (defined $origin ? "\"$origin\"" : 'none');

	my %from = defined $origin ? (Origin => $origin) : ();

	is_none(preflight("/map/$recon", $origin), 405, "$name: OPTIONS",
		@vary);
	is_none($t->get("/map/$recon", \%from), 200, "$name: GET", @vary);

	# responses that caches store for a year

	my $r = $t->get("/map/v1/files/$file->{hash}", \%from);

	like($r->header_value('Cache-Control'), qr/immutable/,
		"$name: a file, for long");
	is_none($r, 200, "$name: a file", @vary);
}

# a variable that is "*" for some requests and "off" for others

for my $case ([ '*', '*' ], [ 'off', undef ]) {
	my ($value, $origin) = @$case;
	my $r = $t->get("/empty/$recon?origin=$value", { Origin => $hub });

	is($r->header_value('Access-Control-Allow-Origin'), $origin,
		"$value of a variable");
	is_deeply($r->{headers}{vary}, @vary, "$value of a variable: Vary");
}

# every kind of response has the headers, even an error, because a page could
# not read the error without them

for my $case (
	[ 'GET', 'v1/health', 200 ],
	[ 'GET', "v1/reconstructions?file_id=$file->{hash}", 200 ],
	[ 'GET', "v1/chunks/default/$none", 404 ],
	[ 'GET', 'nothing', 404 ],
	[ 'GET', "v2/reconstructions/$none", 404 ],
	[ 'GET', 'v1/chunks/default/x', 400 ],
	[ 'PUT', 'v1/shards', 405 ],
	[ 'POST', 'v1/shards', 400 ],
	[ 'POST', "v1/xorbs/default/$none", 400 ],
	[ 'HEAD', "v1/files/$file->{hash}", 200 ],
	[ 'GET', "v1/files/$file->{hash}", 200 ],
	[ 'POST', 'v1/telemetry', 400 ],
) {
	my ($method, $path, $status) = @$case;

	is_open($t->http($method, "/map/$path", { Origin => $hub },
		$method =~ /^P/ ? 'x' x 100 : undef), $status, $hub,
		"map: $method $path: $status");
}

is_open($t->post("/map/v1/shards", \$file->{shard}, { Origin => $hub }), 200,
	$hub, 'map: POST shards');
is_open($t->post("/map/v2/shards", \$file->{shard}, { Origin => $hub }), 200,
	$hub, 'map: POST v2/shards');

# --------------------------------------------------------------------------
# tokens: a browser sends no token with a preflight request

is_preflight(preflight("/token/$recon", $hub), $hub, 'tokens: OPTIONS');
is_preflight(preflight('/token/v1/shards', $hub, method => 'POST'), $hub,
	'tokens: OPTIONS of shards');
is_none(preflight("/token/$recon", 'https://evil.example'), 401,
	'tokens: OPTIONS of another', @vary);
is_open($t->get("/token/$recon", { Origin => $hub }), 401, $hub,
	'tokens: 401');

# --------------------------------------------------------------------------
# data

my $json = $t->get("/api/$recon", { Host => '127.0.0.1:'
	. $t->port(8081) })->json();
my ($entry) = map { @$_ } values %{ $json->{xorbs} };
my ($uri) = $entry->{url} =~ m!^https?://[^/]+(/.*)!;
my ($from, $to) = @{ $entry->{ranges}[0]{bytes} }{qw/ start end /};
my %range = (Range => "bytes=$from-$to");

is_none($t->get($uri, { %range, Origin => $hub }), 206, 'data, off: GET');
is_none(preflight($uri, $hub), 405, 'data, off: OPTIONS');

is_preflight(preflight($uri, $hub, port => 8081), $hub, 'data: OPTIONS');
is_none(preflight($uri, 'https://evil.example', port => 8081), 405,
	'data: OPTIONS of another', @vary);

# a preflight request for a URL reveals nothing about the URL

is_preflight(preflight("/xorbs/default/01/$none", $hub, port => 8081), $hub,
	'data: OPTIONS of a missing xorb');

my $r = $t->get($uri, { %range, Origin => $hub }, port => 8081);

is_open($r, 206, $hub, 'data: 206');
is($r->header_value('Vary'), 'Origin', 'data: 206: Vary');
is(length($r->{body}), $to - $from + 1, 'data: 206: bytes');
ok(defined $r->header_value($_), "data: 206: $_")
	for qw/ Content-Range ETag /;

is_open($t->head($uri, { %range, Origin => $hub }, port => 8081), 206, $hub,
	'data: HEAD');
is_open($t->get($uri, { Origin => $hub }, port => 8081), 403, $hub,
	'data: no range: 403');
is_open($t->get("$uri&x=1", { %range, Origin => $hub }, port => 8081), 403,
	$hub, 'data: a bad signature: 403');
is_none($t->get($uri, { %range, Origin => 'https://evil.example' },
	port => 8081), 206, 'data: another origin', @vary);
is_open($t->get($uri, { %range, Origin => $hub, 'If-None-Match' =>
	$r->header_value('ETag') }, port => 8081), 304, $hub, 'data: 304');

# a xorb through the API: the header is sent once

$r = $t->get("/api/v1/xorbs/default/$file->{xorbs}[0]{hash}",
	{ Range => 'bytes=0-9', Origin => $hub }, port => 8081);

is_open($r, 206, $hub, 'GET of a xorb');

for my $case ([ 'GET of a xorb', $r ], [ 'data', $t->get($uri,
	{ %range, Origin => $hub }, port => 8081) ],
	[ 'no xorb', $t->get("/api/v1/xorbs/default/$none",
	{ Origin => $hub }, port => 8081) ])
{
	my ($name, $answer) = @$case;

	is_deeply($answer->{headers}{'access-control-allow-origin'}, [ $hub ],
		"$name: one Access-Control-Allow-Origin");
}

# errors of nginx before the access phase and after it

sub too_large {
	my ($origin) = @_;

	return $t->post('/api/v1/shards', undef, { Origin => $origin,
		'Content-Length' => 81 << 20 }, port => 8081);
}

is_open(too_large($hub), 413, $hub, 'an error of nginx');
is_none(too_large('https://evil.example'), 413,
	'an error of nginx, another origin', @vary);
is_none($t->post('/api/v1/shards', undef, { Origin => $hub,
	'Content-Length' => 81 << 20 }), 413, 'an error of nginx, off');

my $missing = $entry->{url} =~ s!^https?://[^/]+!!r;

$t->remove_copy($missing =~ s!^/|\?.*!!gr);
is_open($t->get($missing, { %range, Origin => $hub }, port => 8081), 404,
	$hub, 'a file without a copy');

for my $case ([ '413', too_large($hub) ], [ '404', $t->get($missing,
	{ %range, Origin => $hub }, port => 8081) ])
{
	my ($name, $answer) = @$case;

	for my $header (qw/ access-control-allow-origin vary
		access-control-expose-headers /)
	{
		is(scalar(@{ $answer->{headers}{$header} }), 1,
			"$name: one $header");
	}

	ok($answer->json(), "$name: is JSON");
}

$t->done();
