#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# "xet_read_only on": every route of routes.def, in the shipped locations, with
# tokens and without.  Requests that change something are refused, reads get
# their responses, and the database does not change.  "xet_delete off": requests
# that delete something permanently are refused, and other writes work.  nginx
# refuses both directives where they would have no effect.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table root slurp /;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $json = JSON::PP->new()->canonical();
my $t = Test::Xet->new(workers => 1);

# four servers: everything is allowed; read-only; no deletes; read-only without
# tokens

my ($all, $closed, $kept, $open) = 8080 .. 8083;
my %servers = (
	$all => 'xet_auth token;',
	$closed => 'xet_auth token; xet_hub_public on; xet_read_only on;',
	$kept => 'xet_auth token; xet_delete off;',
	$open => 'xet_auth off; xet_hub_expose on; xet_read_only on;'
);

$t->token_key();
$t->conf_locations();
$t->write_file('xet_hub.conf', slurp(root() . '/conf/xet_hub.conf'));
$t->write_conf("%%MAIN%%\nevents { }\nhttp {\n%%HTTP%%\n"
	. join("\n    ", grep { !/xet_url_base/ } split(/\n\s*/,
		$t->conf_xet())) . "\nxet_token_key %%DIR%%/token.key;\n"
	. join('', map { server($_, $servers{$_}) } sort keys %servers)
	. "}\n");
$t->run();
$t->allow(qr/xet: (?:4\d\d|501) /);

sub server {
	my ($port, $lines) = @_;

	return "server {\nlisten 127.0.0.1:%%PORT_$port%%;\n"
		. "xet_url_base http://127.0.0.1:%%PORT_$port%%;\n$lines\n"
		. "include %%DIR%%/xet_location.conf;\n"
		. "include %%DIR%%/xet_hub.conf;\n"
		. Test::Xet::Token::token_location() . "}\n";
}

my $alice = $t->auth('delete', '@alice');
my $repo = $t->auth('delete', 'r/r@alice');
my $content = mix(1, 200_000);

# --------------------------------------------------------------------------
# the contents of the store

my $file = $t->upload($content, headers => $repo);

for my $name (qw/ m gone /) {
	is($t->post('/api/repos/create', \$json->encode({ name => $name }),
		$alice)->{status}, 200, "a repo $name");
}

is(commit($all, 'f.bin', 'one')->{status}, 200, 'a commit');
is($t->post('/api/models/alice/m/tag/main', \'{"tag":"v1"}', $alice)
	->{status}, 200, 'a tag');
is($t->post('/api/models/alice/m/branch/more', \'{}', $alice)->{status}, 200,
	'a branch');
is($t->post('/api/buckets/alice/b', \'{}', $alice)->{status}, 200,
	'a bucket');

my $write = { Authorization => 'Bearer '
	. $t->get('/api/buckets/alice/b/xet-write-token', $alice)
		->json()->{accessToken} };
my $put = $t->upload('of a bucket', base => '/cas/v1', headers => $write);

is(batch($all, { type => 'addFile', path => 'f', xetHash => $put->{hash},
	mtime => 0 })->{status}, 200, 'a file in the bucket');

# an LFS URL, from a server that accepts uploads

my $oid = sha256_hex('by LFS');
my $lfs = $json->encode({ operation => 'upload', objects => [ { oid => $oid,
	size => 6 } ] });
my $r = $t->post('/alice/m.git/info/lfs/objects/batch', \$lfs, { %$alice,
	'Content-Type' => 'application/vnd.git-lfs+json' });
my ($href) = $r->{body} =~ m!"href":"http://[^/"]+(/[^"]+)"!;

ok($href, 'LFS: a URL to send an object') or diag($r->{body});

# --------------------------------------------------------------------------
# every route

my $before = contents();
my %kinds;

for my $route (api_routes(), hub_routes()) {
	my ($name, $method, $uri, $changes, $table, $scope) = @$route;

	for my $port ($closed, $open) {
		my $who = $uri =~ m!^/cas/! ? $repo : $port == $open ? {}
			: $table eq 'api' ? $repo : $alice;

		$r = $t->http($method, $uri, $who, $method =~ /^(?:PUT|POST)$/
			? \'{}' : undef, port => $port);

		my $code = $method eq 'HEAD' ? 'read_only'
			: $r->{status} == 403 ? code($r) : '';
		my $want = qr/^read_only$/;

		# a scope that this token lacks is reported before the read-only
		# mode

		$want = qr/^(?:read_only|insufficient_scope)$/
			if $scope eq 'admins' && $port == $closed;

		if ($changes) {
			is($r->{status}, 403, "$port: $name: refused");
			like($code, $want, "$port: $name: why");
		} else {
			unlike("$r->{status} $r->{body}",
				qr/read_only|^5(?!01)/, "$port: $name: is not");
		}

		$kinds{"$table $changes"}++;
	}
}

cmp_ok($kinds{$_} // 0, '>=', 10, "routes: $_")
	for 'api 0', 'api 1', 'hub 0', 'hub 1';

# routes where the body or a signature decides whether the request changes data

for my $port ($closed, $open) {
	my $who = $port == $open ? {} : $alice;

	is(code($t->http('POST', '/alice/m.git/info/lfs/objects/batch', $who,
		\$lfs, port => $port)), 'read_only', "$port: LFS: upload");
	is(code($t->http('PUT', $href, {}, \'by LFS', port => $port)),
		'read_only', "$port: LFS: a URL of another server");
	is(code(commit($port, 'g', 'x')), 'read_only', "$port: a commit");
	is(code(batch($port, { type => 'deleteFile', path => 'f' })),
		'read_only', "$port: a batch");
	is($t->http('POST', '/v1/telemetry', $who, \'{}', port => $port)
		->{status}, $t->post('/v1/telemetry', \'{}', $alice)
		->{status}, "$port: telemetry");
}

is(contents(), $before, 'nothing has changed');

# tokens

for my $scope (qw/ read write delete /) {
	my $token = $t->get("/token/$scope/r/r", {}, port => $closed)
		->json()->{accessToken};

	is(code($t->http('PUT', '/api/v1/files', { Authorization =>
		"Bearer $token" }, \'x')), 'insufficient_scope',
		"a token to $scope from there reads");
}

# reads get their responses

is($t->get("/api/v1/files/$file->{hash}", $repo, port => $closed)->{body},
	$content, 'a file by its hash');
is($t->get('/alice/m/resolve/main/f.bin', $alice, port => $_)->{body}, 'one',
	"$_: a file by its name") for $closed, $open;
is($t->get('/api/models/alice/m/xet-read-token/main', $alice,
	port => $closed)->{status}, 200, 'a token to read');
is($t->get('/alice/m/resolve/main/f.bin', {}, port => $closed)->{body}, 'one',
	'a public file without a token');
is($t->http('POST', '/api/models/alice/m/paths-info/main', $alice,
	\'{"paths":["f.bin"]}', port => $closed)->{status}, 200, 'paths-info');

# --------------------------------------------------------------------------
# no deletes

for (
	[ 'API: a file', DELETE => "/api/v1/files/$file->{hash}", $repo ],
	[ 'API: a repo', DELETE => '/api/v1/repo', $repo ],
	[ 'a repo', DELETE => '/api/repos/delete', $alice,
		'{"name":"gone"}' ],
	[ 'a bucket', DELETE => '/api/buckets/alice/b', $alice ],
	[ 'a branch', DELETE => '/api/models/alice/m/branch/more', $alice ],
	[ 'a tag', DELETE => '/api/models/alice/m/tag/v1', $alice ]
) {
	my ($name, $method, $uri, $who, $body) = @$_;

	is(code($t->http($method, $uri, $who, defined $body ? \$body : undef,
		port => $kept)), 'no_deletes', "no deletes: $name");
}

$before = contents();
is(code(batch($kept, { type => 'addFile', path => 'g', xetHash =>
	$put->{hash}, mtime => 0 }, { type => 'deleteFile', path => 'f' })),
	'no_deletes', 'no deletes: a batch');
is(contents(), $before, 'no deletes: nothing has changed');

is($t->put('/api/v1/files', \'new', $repo, port => $kept)->{status}, 200,
	'no deletes: a file by PUT');
is(batch($kept, { type => 'addFile', path => 'g', xetHash => $put->{hash},
	mtime => 0 })->{status}, 200, 'no deletes: a file in a bucket');
is(commit($kept, 'g', 'two')->{status}, 200, 'no deletes: a commit');

my $sha = $t->get('/api/models/alice/m', $alice)->json()->{sha};

is(ndjson($kept, '/api/models/alice/m/commit/main', { key => 'header',
	value => { summary => 's' } }, { key => 'deletedFile', value => {
	path => 'g' } })->{status}, 200, 'no deletes: a commit without a file');
is($t->get('/alice/m/resolve/main/g', $alice)->{status}, 404,
	'no deletes: not in the last commit');
is($t->get("/alice/m/resolve/$sha/g", $alice)->{body}, 'two',
	'no deletes: in the commit before');
is($t->http('DELETE', '/api/models/alice/m/tag/v1', $alice)->{status}, 200,
	'another server deletes');

# --------------------------------------------------------------------------
# what nginx refuses

my $conf = Test::Xet::default_conf();
my $key = 'xet_token_key %%DIR%%/token.key;';

for (
	[ 'a token to write', qr/"xet_token_scope" must be "read" or/,
		server => "xet_read_only on;\nlocation = /token { xet_token; "
			. "xet_token_scope write; }", http => $key ],
	[ 'a server without the API', qr/"xet_read_only" has no effect/,
		server => 'xet_read_only on;',
		locations => 'location / { proxy_pass http://127.0.0.1:9; }' ],
	[ 'an edge', qr/"xet_read_only" has no effect/,
		http => 'xet_read_only on;', locations => 'location / {
			xet_verify_body on; client_max_body_size 80m;
			proxy_pass http://127.0.0.1:9; }' ],
	[ 'deletes of nothing', qr/"xet_delete" has no effect/,
		server => 'xet_delete off;',
		locations => 'location / { proxy_pass http://127.0.0.1:9; }' ],
	[ 'a location', qr/"xet_read_only" directive is not allowed here/,
		locations => 'location /api/ { xet_api; xet_auth off;
			xet_read_only on; }' ]
) {
	my ($name, $words, %o) = @$_;
	my ($good, $out) = $t->config_test(undef, %o);

	ok(!$good, "nginx -t: $name");
	like($out, qr/\[emerg\] .*$words.* in \S+:\d+$/m,
		"nginx -t: $name: why, and where");
}

for (
	[ 'a token that may vary', server => "xet_read_only on;\nlocation ="
		. ' /token { xet_token; xet_token_scope $arg_s; }',
		http => $key ],
	[ 'a small body', server => 'xet_read_only on;',
		locations => 'location /api/ { xet_api; xet_auth off; }' ],
	[ 'of http', http => "xet_read_only on;\nxet_delete off;" ],
	[ 'off', server => "xet_read_only off;\nxet_delete on;",
		locations => 'location / { return 204; }' ]
) {
	my ($name, %o) = @$_;
	my ($good, $out) = $t->config_test(undef, %o);

	ok($good, "nginx -t: accepted: $name") or diag($out);
	unlike($out, qr/client_max_body_size/, "nginx -t: no message: $name");
}

$t->done();

# --------------------------------------------------------------------------

sub code {
	my ($r) = @_;

	my $data = eval { $r->json() };

	return "$r->{status} " . ($r->{body} // '') unless ref($data) eq 'HASH';
	return ref $data->{error} ? $data->{error}{code}
		: $data->{details}{code} // "$r->{status}";
}

sub ndjson {
	my ($port, $uri, @lines) = @_;

	return $t->http('POST', $uri, { %{ $port == $open ? {} : $alice },
		'Content-Type' => 'application/x-ndjson' },
		\join('', map { $json->encode($_) . "\n" } @lines),
		port => $port);
}

sub commit {
	my ($port, $path, $text) = @_;

	return ndjson($port, '/api/models/alice/m/commit/main', { key =>
		'header', value => { summary => 's' } }, { key => 'file',
		value => { path => $path, encoding => 'base64',
			content => encode_base64($text, '') } });
}

sub batch {
	my ($port, @lines) = @_;

	return ndjson($port, '/api/buckets/alice/b/batch', @lines);
}

# Returns [ name, method, uri, changes something, table, access ] for each
# route.

sub api_routes {
	my @routes;
	my %parts = (hash => $file->{hash}, prefix => 'default', grant => 1);

	for my $row (@{ module_table('routes') }) {
		my $path = $row->{form} =~ s/:(\w+)/
			$parts{$1} \/\/ die "part $1\n"/ger;

		for my $version (@{ $row->{versions} }) {
			for my $method (@{ $row->{methods} }) {
				for my $base ('/api', '/cas') {
					my $uri = $base . ($version ne ''
						? "/$version" : '') . "/$path";

					push @routes, [ "$method $uri", $method,
						$uri, 0 + ($row->{access}
						=~ /^(?:writes|deletes)$/),
						'api', $row->{access} ];
				}
			}
		}
	}

	return @routes;
}

sub hub_routes {
	my @routes;
	my %parts = (type => 'models', id => 'alice/m', rev => 'main',
		path => 'f.bin', git => 'alice/m.git', repo => 'alice/m',
		owner => 'alice', root => '', view => 'tree');

	for my $row (@{ module_table('hub') }) {
		my $uri = '/' . $row->{form} =~ s/:(\w+)/
			$parts{$1} \/\/ die "part $1\n"/ger;

		$uri =~ s!alice/m!alice/b! if $uri =~ /buckets/;

		for my $method (@{ $row->{methods} }) {
			push @routes, [ "$method $row->{form}", $method, $uri,
				0 + ($row->{act} eq 'act' || $row->{access}
					=~ /^(?:writes|deletes|admins)$/),
				'hub', $row->{access} ];
		}
	}

	return @routes;
}

# Returns the number of rows and a digest for each table that requests write.

sub contents {
	my @tables = grep { !/^(?:jobs|store|migrations)$/ }
		sort keys %{ $t->rows() };

	return join("\n", $t->sql(join(' UNION ALL ', map {
		"SELECT '$_ ' || count(*) || ' ' || coalesce(md5(string_agg("
		. "x::text, ',' ORDER BY x::text)), '') FROM xet.\"$_\" x"
	} @tables)));
}
