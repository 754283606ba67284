#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Access tokens: which tokens are accepted, who may write, and what a token
# location mints.  No log ever shows a key or a token.
#
# "trap N" in names: docs/protocol.md numbers the traps.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Real;

use Digest::SHA qw/ hmac_sha256 /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 encode_base64url /;

my %keys = (t1 => 'ab' x 32, t2 => 'cd' x 32);

my $locations = <<'EOC';
location /api/ {
            xet_api;
            xet_auth token;
            xet_access store;
            client_max_body_size 80m;
        }

        location /strict/ {
            xet_api;
            xet_api_base /strict;
            xet_auth token;
            xet_access store;
            xet_token_issuer us;
            xet_token_audience them;
            xet_token_leeway 60s;
        }

        location /tls/ {
            xet_api;
            xet_api_base /tls;
            xet_auth token;
            xet_access store;
            xet_require_tls on;
        }

        location /behind/ {
            xet_api;
            xet_api_base /behind;
            xet_auth token;
            xet_access store;
            xet_require_tls $http_x_forwarded_proto;
        }

        location /xorbs/ {
            %%DATA%%
        }

        location ~ ^/api/models/(?<repo>.+)/xet-(?<scope>\w+)-token/ {
            xet_token;
            xet_token_scope $scope;
            xet_token_repo $repo;
            xet_token_subject $arg_who;
            xet_token_lifetime 10m;
        }

        location = /token {
            auth_basic store;
            auth_basic_user_file %%DIR%%/users;

            xet_token;
            xet_token_scope $may;
            xet_token_subject $remote_user;
        }
EOC

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => "large_client_header_buffers 8 72k;\n"
		. 'map $remote_user $may { default ""; alice write; bob read; }'
		. "xet_token_key %%DIR%%/token.key;\n"
		. "xet_token_cache zone=tokens:256k;\n"
		. 'log_format who "$xet_subject|$xet_repo|$xet_scope|'
		. '$xet_route";'
		. "\naccess_log %%DIR%%/who.log who;",
	locations => $locations);

keys_file('t1');
$t->write_file('users', join('', map { "$_:{PLAIN}$_\n" }
	qw/ alice bob carol /));
$t->run();

my $path = '/api/v1/reconstructions/' . 'a' x 64;
my $good = token('t1');

# --------------------------------------------------------------------------
# which tokens are accepted

{
	my $r = get($path);

	is($r->{status}, 401, 'no token');
	is($r->{reason}, $r->json()->{error}{message},
		'no token: the reason phrase, which hf_xet prints');
}

like(get($path)->header_value('WWW-Authenticate'), qr/^Bearer /,
	'no token: WWW-Authenticate');
is(get($path)->json()->{error}{code}, 'invalid_token', 'no token: code');
is($t->get('/api/health')->{status}, 200, 'health needs no token');
is($t->get('/api/nothing')->{status}, 401, 'unknown route: no token');
is(get('/api/nothing', $good)->{status}, 404, 'unknown route: token');

is(get($path, $good)->{status}, 404, 'good');
is(get($path, $good)->{status}, 404, 'good, again');
is(get($path, token('t1', scope => 'write'))->{status}, 404,
	'trap 37: a token to write may read');

my %bad = (
	'garbage' => 'x.y.z',
	'one part' => 'abc',
	'empty' => '',
	'wrong secret' => token('t2', kid => 't1'),
	'unknown key' => token('t2'),
	'expired' => token('t1', exp => time() - 1),
	'no expiry' => token('t1', exp => undef),
	'expiry as a string' => token('t1', exp => 'soon'),
	'not yet' => token('t1', nbf => time() + 100),
	'alg none' => unsigned('none'),
	'alg NONE' => unsigned('NONE'),
	'alg RS256' => token('t1', alg => 'RS256'),
	'padded' => token('t1') . '=',
	'two tokens' => token('t1') . ',' . token('t1'),
	'too long' => token('t1', sub => 'x' x 20000)
);

for my $name (sort keys %bad) {
	is(get($path, $bad{$name})->{status}, 401, "bad: $name");
}

is($t->get($path, { Authorization => 'Basic YTpi' })->{status}, 401,
	'another scheme');
is($t->get($path, { Authorization => "bearer $good" })->{status}, 404,
	'the scheme in lower case');

# every character of the signature matters

my ($head) = $good =~ /^(.*\.)/;
my $failed = 0;

for my $i (length($head) .. length($good) - 2) {
	my $other = $good;
	substr($other, $i, 1) = substr($other, $i, 1) eq 'A' ? 'B' : 'A';
	$failed++ if get($path, $other)->{status} != 401;
}

is($failed, 0, 'altered signatures');

# --------------------------------------------------------------------------
# scope

my $xorb = make_xorb(random_bytes(1, 100000));
my $to = "/api/v1/xorbs/default/$xorb->{hash}";

is(post($to, $xorb->{bytes}, $good)->{status}, 403, 'a reader may not write');
is(post($to, $xorb->{bytes}, $good)->json()->{error}{code},
	'insufficient_scope', 'a reader may not write: code');
is(post($to, $xorb->{bytes})->{status}, 401, 'no token: no write');
is($t->sql('select count(*) from xet.xorbs'), 0, 'nothing was written');
is(post($to, $xorb->{bytes}, token('t1', scope => 'write'))->{status}, 200,
	'a writer may');
is(get($path, token('t1', scope => 'root'))->{status}, 403,
	'an unknown scope');
is(post('/api/v1/telemetry', '{"event":"e"}', $good)->{status}, 200,
	'telemetry of a reader');

# each request is sent twice, the second time with a cached result; a caller
# that may delete gets 404 for a missing file

for my $case ([ 'read' => 403 ], [ 'write' => 403 ], [ 'read write' => 403 ],
	[ 'delete' => 404 ], [ 'read delete' => 404 ],
	[ 'delete write read' => 404 ], [ 'deleted undelete read' => 403 ])
{
	my ($scope, $want) = @$case;
	my $token = token('t1', scope => $scope);

	for my $time ('verified', 'cached') {
		is($t->http('DELETE', '/api/v1/files/' . 'a' x 64,
			{ Authorization => "Bearer $token" })->{status}, $want,
			"scope $scope: DELETE, $time");
		is(get($path, $token)->{status}, 404,
			"scope $scope: to read, $time");
	}

	is(post($to, $xorb->{bytes}, $token)->{status},
		$want == 404 || $scope =~ /\bwrite\b/ ? 200 : 403,
		"scope $scope: to write");
}

{
	my $minted = $t->get('/api/models/team/model/xet-delete-token/main')
		->json()->{accessToken};

	is($t->http('DELETE', '/api/v1/files/' . 'a' x 64,
		{ Authorization => "Bearer $minted" })->{status}, 404,
		'mint: a token to delete');
	like($t->read_file('who.log'), qr/\|delete\|files$/m,
		'the variable has its scope');
}

# --------------------------------------------------------------------------
# issuer, audience and clocks

$path =~ s/api/strict/;

is(get($path, $good)->{status}, 401, 'strict: no issuer');
is(get($path, token('t1', iss => 'us'))->{status}, 401,
	'strict: no audience');
is(get($path, token('t1', iss => 'us', aud => 'them'))->{status}, 404,
	'strict: right');
is(get($path, token('t1', iss => 'us', aud => [ 'a', 'them' ]))->{status},
	404, 'strict: right, several audiences');
is(get($path, token('t1', iss => 'me', aud => 'them'))->{status}, 401,
	'strict: wrong issuer');
is(get($path, token('t1', iss => 'us', aud => 'them',
	exp => time() - 30))->{status}, 404, 'strict: within the leeway');
is(get($path, token('t1', iss => 'us', aud => 'them',
	exp => time() - 90))->{status}, 401, 'strict: beyond the leeway');

# a cached result of one location does not make a token valid in another
# location, nor invalid

my $strict = token('t1', iss => 'us', aud => 'them', exp => time() - 30);

is(get($path, $strict)->{status}, 404, 'cache: valid in one location');
(my $other = $path) =~ s/strict/api/;
is(get($other, $strict)->{status}, 401, 'cache: invalid in another');

# --------------------------------------------------------------------------
# TLS

is(get('/tls/v1/reconstructions/' . 'a' x 64, $good)->{status}, 403,
	'TLS: refused in clear');

for (undef, 'http') {
	is($t->get('/behind/v1/reconstructions/' . 'a' x 64,
		{ Authorization => "Bearer $good",
			defined $_ ? ('X-Forwarded-Proto' => $_) : () })
		->{status}, 403, 'TLS: plain HTTP to the proxy');
}

is($t->get('/behind/v1/reconstructions/' . 'a' x 64,
	{ Authorization => "Bearer $good", 'X-Forwarded-Proto' => 'https' })
	->{status}, 404, 'TLS: TLS to the proxy');

# --------------------------------------------------------------------------
# minting

my $from = time();
my $r = $t->get('/api/models/team/model/xet-write-token/main?who=alice');
my $json = $r->json();

is($r->{status}, 200, 'mint');
like($json->{casUrl}, qr!^\Q${\ $t->url('/api') }\E/e\d+\z!,
	'mint: casUrl, no slash before the epoch');

# time() has the resolution of the clock's tick, and may be behind nginx's
# clock

ok($json->{exp} >= $from + 599 && $json->{exp} <= time() + 601, 'mint: exp');
is($r->header_value('X-Xet-Cas-Url'), $json->{casUrl}, 'mint: header casUrl');
is($r->header_value('X-Xet-Access-Token'), $json->{accessToken},
	'mint: header token');
is($r->header_value('X-Xet-Token-Expiration'), $json->{exp},
	'mint: header expiry');
like($r->header_value('Cache-Control'), qr/no-store/, 'mint: not cached');
is(post($to, $xorb->{bytes}, $json->{accessToken})->{status}, 200,
	'mint: a token that may write');

$json = $t->get('/api/models/team/model/xet-read-token/main')->json();

is(get('/api/v1/reconstructions/' . 'a' x 64, $json->{accessToken})
	->{status}, 404, 'mint: a token that may read');
is(post($to, $xorb->{bytes}, $json->{accessToken})->{status}, 403,
	'mint: but not write');
is($t->get('/api/models/team/model/xet-root-token/main')->{status}, 403,
	'mint: no such scope');

# nginx authenticates the caller, and a map sets the permissions

for my $case ([ alice => 200, 200 ], [ bob => 200, 403 ], [ carol => 403 ],
	[ dave => 401 ])
{
	my ($who, $gets, $writes) = @$case;
	my $r = $t->get('/token', { Authorization => 'Basic '
		. encode_base64("$who:$who", '') });

	is($r->{status}, $gets, "map: $who: a token");

	if ($writes) {
		my $token = $r->json()->{accessToken};

		is(post($to, $xorb->{bytes}, $token)->{status}, $writes,
			"map: $who: a write");
		is(get('/api/v1/reconstructions/' . 'a' x 64, $token)
			->{status}, 404, "map: $who: a read");
	}
}

is($t->get('/token')->{status}, 401, 'map: no user');
is($t->post('/api/models/team/model/xet-read-token/main', \'')->{status}, 405,
	'mint: method');
is($t->get('/api/models/team/../xet-read-token/main')->{status}, 401,
	'mint: dots are normalized');

# repo and subject may come from the request; values that a token can't contain
# are refused

for my $path ('team/a%20b/xet-read-token/main',
	'te%FFam/xet-read-token/main', 'x' x 257 . '/xet-read-token/main',
	'team/model/xet-read-token/main?who=' . 'x' x 257,
	"team/model/xet-read-token/main?who=\xff")
{
	my $r = $t->get("/api/models/$path");

	is_deeply($r->refusal(), [ 400, 'application/json', 'invalid_claim' ],
		'mint: ' . substr($path, 0, 30)) or diag($r->summary());
}

like($t->read_file('who.log'), qr!^alice\|team/model\|write\|xorbs$!m,
	'variables');

# --------------------------------------------------------------------------
# hf_xet, with an expired token and a location that mints a new one

my $dir = tempdir(CLEANUP => 1);
my $file = make_mix("$dir/file", 5, 3000000);
my $info = hf_xet({ env => { XET_TOKEN_EXPIRY => time() - 10,
	XET_REFRESH_URL => $t->url('/api/models/a/b/xet-write-token/main') } },
	'upload', 'session', $t->url('/api'), $file);

is($info->[0]{size}, 3000000, 'hf_xet refreshes and uploads');

hf_xet({ env => { XET_TOKEN_EXPIRY => time() - 10,
	XET_REFRESH_URL => $t->url('/api/models/a/b/xet-read-token/main') } },
	'download', 'session', $t->url('/api'), $info->[0]{hash}, 3000000,
	"$dir/out");
is(sha256_file("$dir/out"), sha256_file($file),
	'hf_xet refreshes and downloads');

# --------------------------------------------------------------------------
# keys change with a reload

$path = '/api/v1/reconstructions/' . 'a' x 64;

keys_file('t2', 't1');
$t->reload();

is(get($path, $good)->{status}, 404, 'rotation: the old key');
is(get($path, token('t2'))->{status}, 404, 'rotation: the new key');

keys_file('t2');
$t->reload();

is(get($path, $good)->{status}, 401,
	'rotation: the old key is gone, cached or not');
is(get($path, token('t2'))->{status}, 404, 'rotation: the new key stays');

# many different tokens with a small cache zone

for my $i (1 .. 2000) {
	$failed++ if get($path, token('t2', sub => "user$i"))->{status} != 404;
}

is($failed, 0, 'more tokens than the cache holds');

# --------------------------------------------------------------------------

my $log = $t->log();

unlike($log, qr/\Q$good\E/, 'no token in the log');
unlike($log, qr/$keys{t1}|$keys{t2}/, 'no key in the log');
unlike($t->read_file('access.log'), qr/\Q$good\E/,
	'no token in the access log');

# --------------------------------------------------------------------------
# nginx -t

for (['xet_token_key %%DIR%%/missing;', 'failed'],
	['xet_token_key %%DIR%%/short.key;', 'line 2: the key is malformed'],
	['xet_token_key %%DIR%%/token.key; xet_token_cache zone=t;',
		'invalid zone'],
	['xet_token_key %%DIR%%/token.key; xet_token_cache zone=t:1k;',
		'too small'],
	['', 'needs "xet_token_key"'])
{
	$t->write_file('short.key', "# short\ntoken:k:abcd\n");
	chmod(0600, $t->dir() . '/short.key');

	my ($ok, $out) = $t->config_test(undef, http => $_->[0]);

	ok(!$ok, "nginx -t: $_->[1]");
	like($out, qr/\Q$_->[1]\E/, "nginx -t: $_->[1]: text");
	unlike($out, qr/abcd/, "nginx -t: $_->[1]: no secret");
}

$t->done();

# --------------------------------------------------------------------------

sub keys_file {
	my (@ids) = @_;

	$t->write_file('token.key', join('', map { "token:$_:$keys{$_}\n" }
		@ids));
	chmod(0600, $t->dir() . '/token.key');
}

sub get {
	my ($path, $token) = @_;

	return $t->get($path, defined $token
		? { Authorization => "Bearer $token" } : {});
}

sub post {
	my ($path, $body, $token) = @_;

	return $t->post($path, \$body, defined $token
		? { Authorization => "Bearer $token" } : {});
}

# Returns a token made by the test itself.

sub token {
	my ($key, %claims) = @_;

	my $kid = delete $claims{kid} || $key;
	my $alg = delete $claims{alg} || 'HS256';

	%claims = (exp => time() + 600, scope => 'read', %claims);
	delete $claims{$_} for grep { !defined $claims{$_} } keys %claims;

	my $json = JSON::PP->new->canonical;
	my $text = encode_base64url($json->encode({ alg => $alg,
		kid => $kid }))
		. '.' . encode_base64url($json->encode(\%claims));

	return "$text." . encode_base64url(hmac_sha256($text,
		pack('H*', $keys{$key})));
}

sub unsigned {
	my ($alg) = @_;

	return encode_base64url(qq({"alg":"$alg"})) . '.'
		. encode_base64url('{"exp":' . (time() + 600)
			. ',"scope":"write"}') . '.';
}
