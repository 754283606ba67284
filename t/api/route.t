#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The router: which paths and methods exist, with and without a version, and
# after an epoch; the responses for all other paths; long headers; and responses
# that nginx itself makes.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table root slurp /;

# trap 43: the sizes of header buffers in conf/nginx.conf

my ($buffers) = slurp(root() . '/conf/nginx.conf')
	=~ /^\s*(large_client_header_buffers\s+\d+\s+\w+;)/m
	or die "no large_client_header_buffers in conf/nginx.conf\n";

my $t = Test::Xet->new(http => $buffers, server => <<'EOF');
location /cors/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /cors;
            xet_cors      https://hub.example;
        }

        location /open/ {
            xet_api;
            xet_auth      off;
            xet_api_base  /open;
            xet_cors      *;
        }

        gzip             on;
        gzip_types       *;
        gzip_min_length  1;
        gzip_proxied     any;
EOF

$t->run();

my $file = $t->upload(mix(1, 100000));
my $xorb = $file->{xorbs}[0]{hash};
my $chunk = $file->{xorbs}[0]{chunks}[0]{hash};
my $none = '0123456789abcdef' x 4;

# Checks for an error response of the router itself: JSON with this code.

sub is_error {
	my ($r, $status, $code, $name) = @_;

	my $json = $r->json();

	is_deeply([ $r->{status}, $r->{error},
		scalar $r->header_value('Location'),
		scalar $r->header_value('Content-Type'),
		ref $json eq 'HASH' ? $json->{error}{code} : $r->{body},
		ref $json eq 'HASH' && length($json->{error}{message}) > 0 ],
		[ $status, undef, undef, 'application/json', $code, !!1 ],
		$name);
}

# --------------------------------------------------------------------------
# existing routes

my %hash = (chunk => $chunk, xorb => $xorb, shard => $none,
	'xorb-grant' => $xorb, 'xorb-commit' => $xorb);
my %body = (shard => $file->{shard}, xorb => $file->{xorbs}[0]{bytes},
	telemetry => '{"time":"2026-01-01T00:00:00Z","event":"xet_upload_'
	. 'summary","session_id":"s","user_agent":"u","metrics":{}}');

# routes whose response to a short request like these is tested elsewhere

my $other = qr!^(?:xorb-|zt/|usage\z|reconstructions\z|file-)!;

my @routes;

for my $row (@{ module_table('routes') }) {
	my ($name) = $row->{form} =~ m!^([^/]+?)s?(?:/|\z)!;

	for my $method (grep { $_ ne 'DELETE' } @{ $row->{methods} }) {
		my $path = $row->{form};

		$path =~ s!:hash!$hash{$name} // $file->{hash}!e;
		$path =~ s!:grant!$none!;
		$path =~ s!:prefix!default!;
		$path =~ s!/default/!/default-merkledb/!
			if "$method $name" eq 'PUT shard';

		push @routes, [ $method, $path, $name, @{ $row->{versions} } ];
	}
}

cmp_ok(scalar(@routes), '>', 30, 'the table has routes');

for my $route (@routes) {
	my ($method, $path, $name, @versions) = @$route;

	my $body = $method =~ /^P/ ? $body{$name} : undef;

	for my $version ('', 'v1', 'v2', 'v3', 'V1', 'v') {
		my $uri = '/api/' . ($version && "$version/") . $path;
		my $r = $t->http($method, $uri, {}, $body);
		my $there = grep { $version eq $_ } @versions;

		if ($there && $path =~ $other) {
			unlike($r->{body}, qr/no_route/,
				"$method $version/$name: a route");

		} elsif ($there) {
			is($r->{status}, 200, "trap 23: $method "
				. ($version && "$version/") . $name)
				or diag($r->{body});

		} elsif ($method eq 'HEAD') {
			is($r->{status}, 404, "HEAD $version/$name: 404");

		} else {
			is_error($r, 404, 'no_route',
				"$method $version/$name: none");
		}

		is($r->header_value('Content-Encoding'), undef,
			'trap 30: no coding') if $there;

		# the response is the same with an epoch, /e17, in the path

		my $other = $t->http($method, $uri =~ s!^/api!/api/e17!r, {},
			$body);

		is_deeply([ $other->{status},
			$there ? () : $other->{body} =~ s/\s+//gr ],
			[ $r->{status}, $there ? () : $r->{body} =~ s/\s+//gr ],
			"e17: $method $version/$name");
	}
}

for my $epoch (qw/ e0 e1 e10 e99999999 e1795300000 e9999999999 /) {
	for my $path ("reconstructions/$file->{hash}", 'health',
		"v1/files/$file->{hash}", "v2/reconstructions/$file->{hash}")
	{
		is($t->get("/api/$epoch/$path")->{status}, 200,
			"$epoch: $path");
	}
}

for my $none (qw! e e00 e01 e007 e10000000000 e99999999999999999999 ex e1x
	E1 e-1 e+1 e1.0 e%2f1 e1/e2 v1/e1 e1/v1/e1 e1/v1/v2 1 !, 'e 1')
{
	my $path = $none =~ s/ /%20/r;

	is_error($t->get("/api/$path/health"), 404, 'no_route',
		"$none: no epoch");
	is_error($t->get("/api/$path"), 404, 'no_route', "$none alone");
}

is_error($t->get("/api/$_"), 404, 'no_route', "$_: no route")
	for qw! e1 e1/ e1// e1/v1 e1/v1/ e1/shards/e1 !;
is($t->get("/e1/api/v1/health")->{status}, 404, 'before the base: 404');

# the version selects the form of the response

my ($v0, $v1, $v2) = map {
	$t->get("/api/${_}reconstructions/$file->{hash}")->json()
} '', 'v1/', 'v2/';

ok($v0->{fetch_info} && !$v0->{xorbs}, 'reconstruction without a version');
ok($v1->{fetch_info} && !$v1->{xorbs}, 'reconstruction of version 1');
ok($v2->{xorbs} && !$v2->{fetch_info}, 'reconstruction of version 2');

for my $uri ('shards', 'v1/shards') {
	is($t->post("/api/$uri", \$file->{shard})->{body}, '{"result":0}',
		"trap 26: $uri");
}

is($t->post('/api/v2/shards', \$file->{shard})->header_value('Content-Type'),
	'application/x-ndjson', 'trap 24: frames of v2/shards');

# --------------------------------------------------------------------------
# paths that do not exist

for my $path ('', 'v1', 'v1/', 'v1/v1/shards', 'v1/v2/shards', 'v2/v1/health',
	'index.html', 'v1/x', 'shards/x', 'shards/', 'v1/shards/',
	'health/', 'health/x', 'health/live/', 'health/live/x', 'v1/health/',
	"reconstructions/$none/", "reconstructions/default/$none",
	"reconstructions/x/y/$none",
	'chunks', "chunks/$none", "chunks/default/$none/",
	"chunks/x/default/$none", 'xorbs', "xorbs/$none", 'xorbs/default',
	"xorbs/default/$none/x", "files/default/$none", "files/$none/",
	"v1/files/$none/x",
	"v1/reconstruction/$none", "v2/reconstruction/$none",
	"v1/xorb/default/$none", "v1/chunk/default/$none",
	'shard', 'v1/shard', "v1/shard/default/$none", "shard/$none",
	"shards/default/$none", "xorb/$none", "file/$none",
	"v1/file-chunk-hashes/$none", 'telemetry/x', 'v2/telemetry',
	'token', 'Shards', 'HEALTH', 'v1/Health',
	"v1/Reconstructions/$none")
{
	for my $method (qw/ GET POST /) {
		is_error($t->http($method, "/api/$path", {},
			$method eq 'POST' ? 'x' x 1000 : undef),
			404, 'no_route', "trap 29: $method $path: none");
	}
}

is($t->get('/api')->{status}, 404, 'the base alone is no route');
is($t->get('/apis/v1/health')->{status}, 404, 'a longer base');
is($t->get('/v1/health')->{status}, 404, 'no base');
is($t->post('/v1/telemetry', $body{telemetry})->{status}, 200,
	'telemetry of the root');

# --------------------------------------------------------------------------
# methods

my %allow = (
	"reconstructions/$none" => 'GET, HEAD',
	"chunks/default/$none" => 'GET, HEAD',
	"xorbs/default/$none" => 'GET, HEAD, POST',
	'shards' => 'POST',
	'files' => 'POST, PUT',
	"files/$none" => 'HEAD',
	'health' => 'GET, HEAD',
	'health/live' => 'GET, HEAD',
	'telemetry' => 'POST'
);

# routes of files have GET, PUT and DELETE

for my $path (sort keys %allow) {
	my ($name) = $path =~ /^(\w+)/;

	for my $method (qw/ POST PUT DELETE PATCH OPTIONS PROPFIND /) {
		next if $allow{$path} =~ /\b$method\b/
			|| $path =~ m!files/! && $method =~ /\A(PUT|DELETE)\z/;

		my $r = $t->http($method, "/api/v1/$path", {}, 'x' x 100);

		is_error($r, 405, 'method_not_allowed', "$method $name");
		my %allowed = map { $_ => 1 }
			split(/, /, $r->header_value('Allow') // '');

		ok(!$allowed{$method} && !(grep { !$allowed{$_} }
			split(/, /, $allow{$path})), "$method $name: Allow")
			or diag(join(' ', sort keys %allowed));
	}
}

is_error($t->get('/api/v1/shards'), 405, 'method_not_allowed', 'GET shards');
is($t->head('/api/v1/shards')->{status}, 405, 'HEAD shards');
is($t->get('/api/v2/shards')->header_value('Allow'), 'POST',
	'GET v2/shards: Allow');
is_error($t->post("/api/v2/reconstructions/$none", 'x'), 405,
	'method_not_allowed', 'POST v2/reconstructions');

# --------------------------------------------------------------------------
# prefixes and hashes

for my $prefix (qw/ default default-merkledb Models a 0 .hidden x_y-z.1 /,
	'p' x 64, '%64efault')
{
	is_error($t->get("/api/v1/chunks/$prefix/$none"), 404,
		'chunk_not_found', "trap 20: prefix $prefix");
	is($t->head("/api/v1/xorbs/$prefix/$xorb")->{status}, 200,
		"one namespace: $prefix");
}

for my $prefix ('p' x 65, 'a%20b', 'a+b', 'a:b', 'a~', '%00', 'a%0ab',
	'%c3%a9', '*', 'a%25', '%22')
{
	my $r = $t->get("/api/v1/chunks/$prefix/$none");

	is($r->{status}, 400, "prefix $prefix: refused");
	next if $prefix eq '%00';

	is_error($r, 400, 'invalid_prefix', "prefix $prefix");
	is($t->post("/api/v1/xorbs/$prefix/$xorb",
		\$file->{xorbs}[0]{bytes})->{status}, 400,
		"prefix $prefix: no upload");
}

for my $hash ('x', substr($none, 1), "${none}0", substr($none, 1) . 'g',
	substr($none, 1) . '%20', substr($none, 1) . '-', '0x' . substr($none,
	2), substr($none, 1) . '%0a', "$none%00", "%c3%a9" x 32)
{
	for my $path ('v1/reconstructions', 'v2/reconstructions',
		'v1/chunks/default')
	{
		my $r = $t->get("/api/$path/$hash");

		is($r->{status}, 400, "hash $hash in $path: refused");
		is_error($r, 400, 'invalid_hash', "hash $hash in $path")
			if $hash !~ /%00/;
	}

	is($t->head("/api/v1/xorbs/default/$hash")->{status}, 400,
		"HEAD of xorb $hash");
	is($t->head("/api/v1/files/$hash")->{status}, 400,
		"HEAD of file $hash");
	is($t->post("/api/v1/xorbs/default/$hash",
		\$file->{xorbs}[0]{bytes})->{status}, 400,
		"POST of xorb $hash");

	# routes with checks of their own, and the paths before 1.1.10

	for my $route ("GET v1/xorbs/default/$hash",
		"GET v2/file-chunk-hashes/$hash", "DELETE v1/files/$hash",
		"GET reconstruction/$hash", "GET chunk/default/$hash",
		"HEAD xorb/default/$hash")
	{
		my ($method, $path) = split(/ /, $route);

		is($t->http($method, "/api/$path")->{status}, 400, $route);
	}
}

for my $prefix ('p' x 65, 'a%20b', '%22') {
	is_error($t->get("/api/v1/xorbs/$prefix/$xorb"), 400, 'invalid_prefix',
		"GET of a xorb: prefix $prefix");
	is($t->http($_, "/api/shard/$prefix/$none", {}, $file->{shard})
		->{status}, 400, "$_ shard: prefix $prefix")
		for qw/ POST PUT /;
}

is_error($t->get('/api/v1/chunks//' . $none), 404, 'no_route',
	'empty prefix: slashes are merged');

# --------------------------------------------------------------------------
# other spellings of a path

for my $uri ('//api/v1/health', '/api//v1/health', '/api/v1//health',
	'///api///v1///health', '/api/v1/./health', '/api/v1/x/../health',
	'/a%70i/v1/health', '/api/%76%31/health', '/api/v1/health?',
	'/api/v1/health?x=1&y=%20', '/x/../api/v1/health')
{
	is($t->get($uri)->{status}, 200, "trap 38: $uri");
}

is($t->get("http://localhost/api/v1/reconstructions/$file->{hash}")
	->{status}, 200, 'absolute form');
is($t->get('/api/v1/../../health')->{status}, 404, 'above the base');
is($t->get('/../api/v1/health')->{status}, 400, 'above the root');

# --------------------------------------------------------------------------
# bodies that the server does not read

my $c = $t->connect();

for my $path ('nothing', "chunks/default/$none", "reconstructions/$none",
	'health')
{
	for my $body ('x' x 10, 'x' x 200000) {
		for my $chunked (0, 1000) {
			my $r = $c->exchange('PUT', "/api/v1/$path", {},
				\$body, chunked => $chunked);
			my $want = $path eq 'nothing' ? 404 : 405;

			is($r->{status}, $want, "PUT $path with a body");
		}
	}
}

is($c->exchange('GET', '/api/v1/health', {}, \('x' x 5000))->{status}, 200,
	'GET with a body');
is($c->exchange('GET', '/api/v1/health')->{status}, 200,
	'the connection is still good');
$c->close();

# --------------------------------------------------------------------------
# long headers

is($t->get('/api/v1/health', { Authorization => 'Bearer ' . 'x' x $_ })
	->{status}, 200, "trap 43: a token of $_ characters")
	for 4096, 8192, 64000;

is($t->get("/api/v1/reconstructions/$file->{hash}", { Range => 'bytes=0-9',
	'X-Custom' => [ ('y' x 30000) x 3 ] })->{status}, 200,
	'trap 43: several long headers');

is_error($t->get("/api/v1/reconstructions/$file->{hash}", {
	Range => 'bytes=' . join(',', map { 10000 * $_ . '-' . (10000 * $_ + 9)
	} 1 .. 500) }), 400, 'invalid_range', 'trap 43: 500 ranges');
is($t->get("/api/v1/reconstructions/$file->{hash}?" . join('&', map {
	"file_id=$none" } 1 .. 500))->{status}, 200, 'trap 43: a long query');

my $r = $t->get('/api/v1/health', { Authorization => 'x' x 80000 });

is($r->{status}, 400, 'a header beyond the buffers');
is($r->{error}, undef, 'a complete response');

$r = $t->get('/api/v1/health?' . 'x' x 80000);

is($r->{status}, 414, 'a request line beyond the buffers');
is($r->{error}, undef, 'a complete response');

# errors of nginx inside the location are JSON as well

is_error($t->http('POST', '/api/v1/shards', {
	'Content-Length' => 81 << 20 }), 413, 'body_too_large',
	'a body beyond client_max_body_size');

# --------------------------------------------------------------------------
# trap 42: browsers

my %asked = (Origin => 'https://hub.example',
	'Access-Control-Request-Method' => 'GET',
	'Access-Control-Request-Headers' => 'authorization, range');

for my $case ([ cors => 'https://hub.example', 'Origin' ],
	[ open => '*', undef ])
{
	my ($base, $origin, $vary) = @$case;

	$r = $t->http('OPTIONS', "/$base/v2/reconstructions/$none", \%asked);

	is_deeply([ $r->{status}, $r->{body},
		scalar $r->header_value('Access-Control-Allow-Origin'),
		scalar $r->header_value('Vary') ],
		[ 204, '', $origin, $vary ], "trap 42: /$base: OPTIONS");
	like($r->header_value('Access-Control-Allow-Headers'), qr/\b$_\b/i,
		"trap 42: /$base: $_ allowed")
		for qw/ Authorization Range X-Range-Dirty X-Xet-Session-Id
		Content-Type /;
	like($r->header_value('Access-Control-Allow-Methods'), qr/\b$_\b/,
		"trap 42: /$base: $_ allowed") for qw/ GET HEAD POST /;

	for my $path ("reconstructions/$file->{hash}", "chunks/x/$none",
		'nothing')
	{
		is($t->get("/$base/v1/$path", \%asked)
			->header_value('Access-Control-Allow-Origin'),
			$origin, "trap 42: /$base: $path");
	}
}

is($t->get('/api/v1/health', \%asked)
	->header_value('Access-Control-Allow-Origin'), undef,
	'trap 42: no header without xet_cors');

# --------------------------------------------------------------------------
# unusual requests

is($t->get('/api/v1/health', {}, http10 => 1)->{status}, 200, 'HTTP/1.0');
is($t->http('TRACE', '/api/v1/health')->{status}, 405, 'TRACE');

$r = $t->get('/api/v1/health', { 'Accept-Encoding' => 'gzip' });

is($r->{status}, 200, 'gzip: status');
is($r->header_value('Content-Encoding'), 'gzip', 'gzip: by nginx');

$t->done();
