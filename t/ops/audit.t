#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The audit log of conf/xet_audit.conf has a line for each action, with the
# caller, the action and its result.  Whatever the client sends, the line is
# valid JSON without secrets.  Other requests do not write a line.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root run_command slurp /;

use Digest::SHA qw/ hmac_sha256 /;
use Encode qw/ decode encode /;
use JSON::PP;
use MIME::Base64 qw/ encode_base64url /;

my $http2 = Test::Xet::Nginx::version() =~ /--with-http_v2_module/
	&& `curl -V 2>&1` =~ /^Features:.* HTTP2\b/m;
my $shipped = slurp(root() . '/conf/xet_audit.conf');

$shipped =~ s!/var/log/nginx/xet_audit.log!%%DIR%%/audit.log!
	or die "conf/xet_audit.conf has no log\n";

my $t = Test::Xet->new(workers => 1, pg_params => 'write_timeout=2s',
	http => "$shipped\nxet_token_key %%DIR%%/token.key;\n"
		. 'add_header X-Request-Id $request_id always;',
	server => ($http2 ? "listen 127.0.0.1:%%PORT_8081%% http2;\n" : '')
		. "xet_auth token;\nxet_token_issuer hub;\n"
		. "log_subrequest on;\n",
	locations => <<'EOF');
location /api/ {
            xet_api;
            xet_access repo;
            client_max_body_size 80m;
            error_page 400 413 414 494 @xet_error;

            location ~ ^/api/(v1/)?files$ {
                xet_api;
                client_max_body_size 1m;
            }
        }

        location /all/ {
            xet_api;
            xet_api_base /all;
            xet_access repo;
            xet_audit all;
        }

        location /off/ {
            xet_api;
            xet_api_base /off;
            xet_audit off;
        }

        location /open/ {
            xet_api;
            xet_api_base /open;
            xet_auth off;
            xet_audit all;
            client_max_body_size 80m;
        }

        location /denied/ {
            xet_api;
            xet_api_base /denied;
            deny all;
        }

        location /xorbs/ {
            %%DATA%%
            xet_audit all;
        }

        location = /token {
            xet_token;
            xet_token_scope $arg_scope;
            xet_token_repo $arg_repo;
            xet_token_subject $http_x_subject;
        }

        location /asks/ {
            auth_request /api/v1/files/asked;
            root %%STORE%%;
            error_page 403 404 500 = @other;
        }

        location @other {
            return 204;
        }

        location /v1/ {
            return 204;
        }

        location /kept/ {
            deny all;
            error_page 403 @xet_error;
        }

        location @xet_error {
            xet_error;
        }
EOF

my $secret = 'ab' x 32;
my $key = $t->write_file('token.key', "token:t1:$secret\n");

chmod(0600, $key);
$t->run();

# Returns a token that this test signs, with any claims.

sub jwt {
	my (%claims) = @_;

	my $key = pack('H*', delete $claims{secret} // $secret);
	my $text = join('.', map { encode_base64url(JSON::PP->new->utf8
		->encode($_)) } { alg => 'HS256', typ => 'JWT', kid => 't1' },
		{ exp => time() + 3600, iss => 'hub', %claims });

	return { Authorization => "Bearer $text."
		. encode_base64url(hmac_sha256($text, $key)) };
}

my %alice = %{ jwt(scope => 'delete', repo => 'team/a', sub => 'alice') };
my %reader = %{ jwt(scope => 'read', repo => 'team/a', sub => 'bob') };

my $read = 0;
my @texts;

# Waits for more than n new lines, and returns all lines since the last call.

sub lines {
	my ($n) = @_;

	my @new;

	wait_for(10, sub {
		@new = split(/\n/, substr(slurp($t->dir() . '/audit.log'),
			$read), -1);
		return @new > $n;
	});

	die "the last line has no end\n" if @new && pop(@new) ne '';

	$read += length("$_\n") for @new;
	push @texts, @new;

	return map { JSON::PP->new->utf8->decode($_) } @new;
}

# Checks that the request has written one line, with these members and the
# members that every line has.

sub act {
	my ($name, $r, %want) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my @lines = lines(1);

	is(scalar @lines, 1, "$name: one line") or diag(explain(\@lines));

	my %is = %{ $lines[0] || {} };

	like(delete $is{time}, qr/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
		"$name: when");
	is(delete $is{address}, '127.0.0.1', "$name: from where");
	is(delete $is{request}, $r->header_value('X-Request-Id'),
		"$name: which");
	is($is{status}, $r->{status}, "$name: the status of the response");

	for (grep { ref $want{$_} eq 'Regexp' } keys %want) {
		like(delete $is{$_}, delete $want{$_}, "$name: $_");
	}

	is_deeply(\%is, \%want, "$name: what") or diag(explain(\%is));
}

sub nothing {
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	# this request writes a line; no earlier request may have written one

	$t->http('DELETE', '/api/v1/files/' . '1' x 64, { %alice });

	my @lines = lines(1);

	is(scalar @lines, 1, "$name: no line") or diag(explain(\@lines));
}

my %who = (repo => 'team/a', subject => 'alice', issuer => 'hub', key => 't1');

# --------------------------------------------------------------------------
# actions

my $x = make_xorb([ mix(1, 70000), mix(2, 30000) ]);
my $r;

$r = $t->post("/api/v1/xorbs/default/$x->{hash}", $x->{bytes}, { %alice });
act('xorb', $r, action => 'xorb.put', status => 200, result => 'new',
	hash => $x->{hash}, bytes => length($x->{bytes}), %who);
$r = $t->post("/api/v1/xorbs/default/$x->{hash}", $x->{bytes}, { %alice });
act('xorb again', $r, action => 'xorb.put', status => 200, result => 'known',
	hash => $x->{hash}, bytes => length($x->{bytes}), %who);

$r = $t->put('/api/v1/files', mix(5, 5000), { %alice });

my $hash = $r->json()->{hash};

act('file', $r, action => 'file.put', status => 200, result => 'new',
	hash => $hash, bytes => 5000, new_bytes => 5000, %who);
$r = $t->put('/api/v1/files', mix(5, 5000), { %alice });
act('file again', $r, action => 'file.put', status => 200, result => 'known',
	hash => $hash, bytes => 5000, new_bytes => 0, %who);

{
	my $file = $t->upload(mix(9, 200000), base => '/open/v1');
	my @put = lines(2);

	is_deeply([ map { $_->{action} } @put ], [ qw/ xorb.put shard.put / ],
		'a client: what it does');
	is($put[1]{files}, 1, 'a client: a file of a shard');
	is($put[1]{result}, 'new', 'a client: new');
	ok(!exists $put[1]{subject}, 'a client: nobody knows who');

	for my $version (qw/ v1 v2 /) {
		$r = $t->post("/open/$version/shards", $file->{shard});
		act("a shard by $version", $r, action => 'shard.put',
			status => 200, result => 'known', files => 1,
			bytes => length($file->{shard}));
	}
}

# an error after the status has been sent

{
	my $file = $t->upload(mix(11, 100000), base => '/open/v1', send => 0);

	$t->post("/open/v1/xorbs/default/$_->{hash}", $_->{bytes})
		for @{ $file->{xorbs} };
	lines(1);

	my $lock = $t->pg_lock('xet.files');

	$r = $t->post('/open/v2/shards', $file->{shard}, {}, timeout => 60);
	$lock->unlock();

	is($r->frames()->[-1]{data}{type}, 'error', 'a late error: a frame');
	act('a late error', $r, action => 'shard.put', status => 200,
		result => 'failed', code => 'database_unavailable',
		files => 1, bytes => length($file->{shard}));
}

$r = $t->http('DELETE', "/api/v1/files/$hash", { %alice });
act('delete', $r, action => 'file.delete', status => 204, result => 'removed',
	hash => $hash, %who);
$r = $t->http('DELETE', "/api/v1/files/$hash", { %alice });
act('delete again', $r, action => 'file.delete', status => 404,
	code => 'file_not_found', hash => $hash, %who);

$r = $t->get('/token?scope=write&repo=team/a', { 'X-Subject' => 'carol' });
act('token', $r, action => 'token.mint', status => 200, repo => 'team/a',
	subject => 'carol', key => 't1', scope => 'write',
	expires => qr/^\d+$/);
$r = $t->get('/token?scope=all&repo=team/a', { 'X-Subject' => 'carol' });
act('no token', $r, action => 'token.mint', status => 403,
	code => 'insufficient_scope');

# --------------------------------------------------------------------------
# refused requests

my $file = "/api/v1/files/$hash";
my %any = (bytes => qr/^\d+$/);

$r = $t->get($file);
act('without a token', $r, action => 'file.get', status => 401,
	code => 'invalid_token', hash => $hash, %any);
$r = $t->get($file, jwt(scope => 'write', secret => 'cd' x 32,
	sub => 'mallory'));
act('a forged one', $r, action => 'file.get', status => 401,
	code => 'invalid_token', hash => $hash, %any);
$r = $t->put('/api/v1/files', 'x', { %reader });
act('may not write', $r, action => 'file.put', status => 403,
	code => 'insufficient_scope', bytes => 0, %who, subject => 'bob');
$r = $t->put('/api/v1/files', 'x', jwt(scope => 'write', sub => 'eve'));
act('of no repo', $r, action => 'file.put', status => 403,
	code => 'insufficient_scope', bytes => 0, subject => 'eve',
	issuer => 'hub', key => 't1');
$r = $t->get('/denied/v1/chunks/default/' . '1' x 64, { %alice });
act('deny', $r, action => 'chunk.get', status => 403, hash => '1' x 64, %any,
	%who);
$r = $t->get('/api/v1/nothing');
act('no route', $r, action => 'unknown', status => 401,
	code => 'invalid_token', path => '/api/v1/nothing', %any);
$r = $t->get("/xorbs/default/11/$hash?X-Xet=$secret",
	{ Range => 'bytes=0-9' });
act('an unsigned URL', $r, action => 'data.get', status => 403,
	code => qr/^\w+$/, %any);

$r = $t->post('/api/v1/telemetry', '{"event":"x"}');
act('telemetry', $r, action => 'telemetry', status => 401,
	code => 'invalid_token', bytes => 0);

$r = $t->http('PUT', '/api/v1/files', { %alice,
	'Content-Length' => 2000000 });
act('413 of nginx', $r, action => 'file.put', status => 413,
	code => 'body_too_large', bytes => 0, %who);
$r = $t->http('PUT', '/api/v1/files', { %alice, 'Content-Length' => '1x' });
act('400 of nginx', $r, action => 'file.put', status => 400, bytes => 0,
	%who);
$r = $t->post("/api/v1/xorbs/default/$x->{hash}", 'x' x 100, { %alice });
act('a bad xorb', $r, action => 'xorb.put', status => 400, code => qr/^\w+$/,
	hash => $x->{hash}, bytes => 100, %who);
$r = $t->post('/api/v2/shards', 'x' x 100, { %alice });
act('a bad shard', $r, action => 'shard.put', status => 400, code => qr/^\w+$/,
	bytes => 100, %who);

# --------------------------------------------------------------------------
# requests that are not actions

$t->get('/api/v1/health');
$t->get("/api/v1/reconstructions/$hash", { %reader });
$t->http('HEAD', "/api/v1/xorbs/default/$x->{hash}", { %reader });
$t->post('/api/v1/telemetry', '{"event":"x"}', { %reader });
$t->http('OPTIONS', '/api/v1/files', { %reader });
$t->put('/v1/files', 'x');
$t->put('/off/v1/files', 'x');
$t->put('/elsewhere', 'x');
$t->get('/kept/x');
$t->http('OPTIONS', '/api/v1/files');
$t->get('/' . 'x' x 80000);
nothing('others');

# subrequests of nginx

$t->get('/asks/');
nothing('subrequests');

# --------------------------------------------------------------------------
# xet_audit all

my $stored = $t->put('/open/v1/files', mix(7, 100000))->json()->{hash};

lines(1);

$r = $t->get("/open/v1/files/$stored");
act('a file', $r, action => 'file.get', status => 200, hash => $stored,
	bytes => 100000);
$r = $t->get("/open/v2/reconstructions/$stored");
act('a reconstruction', $r, action => 'file.reconstruction', status => 200,
	hash => $stored, bytes => length($r->{body}));

my ($xorb) = keys %{ $r->json()->{xorbs} };
my $entry = $r->json()->{xorbs}{$xorb}[0];
my ($url) = $entry->{url} =~ m!^http://[^/]+(.*)!;
my $range = $entry->{ranges}[0]{bytes};

$r = $t->get($url, { Range => "bytes=$range->{start}-$range->{end}" });
act('data', $r, action => 'data.get', status => 206, hash => $xorb,
	bytes => length($r->{body}));
$r = $t->get("/open/v1/xorbs/default/$x->{hash}");
act('a whole xorb', $r, action => 'xorb.get', status => 200,
	hash => $x->{hash}, bytes => length($r->{body}));
$r = $t->get('/all/v1/files/' . '1' x 64, { %reader });
act('a missing file', $r, action => 'file.get', status => 404,
	code => 'file_not_found', hash => '1' x 64, %any, %who,
	subject => 'bob');
$r = $t->post("/open/v1/xorb-grants/default/$x->{hash}", '{}');
act('a grant', $r, action => 'xorb.grant', status => 200, hash => $x->{hash},
	%any);
$t->get('/all/v1/health');
$t->post('/all/v1/telemetry', '{"event":"x"}', { %reader });
nothing('health and telemetry');

# --------------------------------------------------------------------------
# arbitrary input from clients

my @subjects = ('"}', 'a\\', '\\u0022\\n', '{"a":1}', "\x{2028}\x{feff}",
	"\x{1f600}" x 64, 'x' x 256, '$xet_audit', '%0a', "<script>'");

for my $i (0 .. $#subjects) {
	$r = $t->put('/api/v1/files', "x$i", jwt(scope => 'write',
		repo => 'team/a', sub => $subjects[$i]));
	act("subject $i", $r, action => 'file.put', status => 200,
		result => 'new', hash => qr/^\w{64}$/, bytes => length("x$i"),
		new_bytes => length("x$i"), %who, subject => $subjects[$i]);
}

for my $path ('%0a%0d{%22a%22:1}', '%ff%fe%c0%80', '%22,%22status%22:200',
	'%5c', '%7f%01%1b[2J', 'x' x 5000, '%e2%80%a8', '%e2%82' x 100)
{
	$r = $t->http('PUT', "/api/v1/$path", { 'X-Forwarded-For' => "\x02",
		'User-Agent' => "\"\\\xff", 'X-Request-Id' => '"' }, \'x');
	act('path ' . substr($path, 0, 20), $r, action => 'unknown',
		status => 401, code => 'invalid_token', bytes => 0,
		path => qr!^/api/v1/[\x21-\x7e]{0,768}$!);
}

ok(!grep({ /[^\x20-\x7e\x80-\xff]/ } @texts), 'no control character');
ok(!grep({ !eval { decode('UTF-8', my $x = $_, Encode::FB_CROAK); 1 } }
	@texts), 'UTF-8');
ok(!grep({ /eyJ|Bearer|\Q$secret\E|X-Xet|\?/i } @texts), 'no secret');
ok(!grep({ length > 2048 } @texts), 'no line is long');

# --------------------------------------------------------------------------
# clients that disconnect, and several requests on one connection

{
	my $c = $t->http_start('PUT', '/api/v1/files', { %alice,
		'Content-Length' => 300000 }, 'x' x 100000);

	ok($t->wait_log(qr/recv: .* 100000 |http read client request body/),
		'who leaves: has begun');
	$c->abort();

	my @lines = lines(1);

	is(scalar @lines, 1, 'client gone: one line');
	is($lines[0]{action}, 'file.put', 'client gone: the action');
	like($lines[0]{status}, qr/^4\d\d$/, 'who has left: how it ended');
	ok(!exists $lines[0]{result}, 'client gone: no result');
	is($lines[0]{subject}, 'alice', 'client gone: the caller');
}

{
	my $c = $t->connect();

	for my $i (1 .. 20) {
		my $body = "pipelined $i";

		$c->start('PUT', '/api/v1/files', { %alice,
			'Content-Length' => length($body) });
		$c->send($body);
	}

	is(join(' ', map { $c->response('PUT')->{status} } 1 .. 20),
		join(' ', (200) x 20), 'pipelined: answered');
	$c->close();

	my @lines = lines(20);

	is(scalar @lines, 20, 'pipelined: a line each');
	is(scalar(keys %{ { map { $_->{request} => 1 } @lines } }), 20,
		'pipelined: of its own');
}

SKIP: {
	skip('no HTTP/2', 3) if !$http2;

	my $name = $t->write_file('body', 'over HTTP/2');
	my ($status, $out) = run_command([ qw/ curl -s
		--http2-prior-knowledge -T /, $name, '-H',
		"Authorization: $alice{Authorization}",
		$t->url('/api/v1/files', 8081) ]);

	like($out, qr/"hash"/, 'HTTP/2: taken');

	my @lines = lines(1);

	is(scalar @lines, 1, 'HTTP/2: one line');
	is("$lines[0]{action} $lines[0]{result} $lines[0]{bytes}",
		'file.put new 11', 'HTTP/2: what');
}

$t->done();
