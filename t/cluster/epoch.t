#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Epochs in API paths: "e" and digits after the endpoint, which the router
# ignores, and which make clients forget what they have sent.  What the epoch of
# an endpoint depends on, and which tokens get an epoch.  All rules of the API
# also apply to paths with an epoch: limits, CORS, variables, the shipped
# configuration and the edge.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Edge;

use Digest::SHA qw/ sha256 /;

my $t = Test::Xet->new(workers => 2, log => 'info',
	http => <<'EOH', server => <<'EOS');
xet_token_key %%DIR%%/token.key;
    xet_token_scope write;
    xet_upload_zone $http_x_who zone=day:64k bytes=1000000/1d;
    log_format routes "$uri $xet_route $xet_scope";
EOH
access_log %%DIR%%/routes.log routes;

        location /with/ {
            xet_token_epoch 7 period=14d;

            location /with/both { xet_token; }
            location /with/off { xet_token; xet_token_epoch off; }
            location /with/number { xet_token; xet_token_epoch 3; }
            location /with/scope { xet_token; xet_token_scope $arg_scope; }
        }

        location /plain { xet_token; }
        location /zero { xet_token; xet_token_epoch 0; }
        location /period { xet_token; xet_token_epoch period=14d; }
        location /zero-period {
            xet_token;
            xet_token_epoch 0 period=14d;
        }

        location /minute { xet_token; xet_token_epoch period=1m; }
        location /odd { xet_token; xet_token_epoch 99 period=61s; }
        location /year { xet_token; xet_token_epoch period=366d; }

        location /who {
            xet_token;
            xet_token_repo $arg_repo;
            xet_token_subject $arg_sub;
        }

        location /url {
            xet_token;
            xet_token_cas_url $arg_url;
            xet_token_epoch 1795300000;
        }

        location /limited/ {
            xet_api;
            xet_api_base /limited;
            xet_auth off;
            xet_upload_limit day;
            client_max_body_size 80m;
        }

        location /closed/ {
            xet_api;
            xet_api_base /closed;
            xet_auth token;
            xet_access store;
            xet_cors https://hub.example;
        }

        location /e5/deep/ {
            xet_api;
            xet_api_base /e5/deep;
            xet_auth off;
        }
EOS

$t->token_key();
$t->run();

# The first worker names the store after its start, and the name is a part of
# each epoch.

wait_for(20, sub { $t->sql('SELECT identity FROM xet.store') })
	or die "the database has no store\n";

# --------------------------------------------------------------------------
# the endpoint that the token location returns

sub endpoint {
	my ($uri) = @_;

	my $r = $t->get($uri);

	is($r->header_value('X-Xet-Cas-Url'), $r->json()->{casUrl},
		"$uri: header and body");

	return $r->json()->{casUrl};
}

my $api = $t->url('/api');

# The epoch is a digest of a number of the database, which changes when clients
# must forget; the configured number, -2 if there is none; the start of the
# period; the repo and the subject.

sub epoch_of {
	my ($number, $start, $repo, $sub) = @_;

	my $from = $t->sql("SELECT xet.token_epoch('$repo', '$sub')");
	my ($n) = unpack('Q>', sha256("$from $number $start " . length($repo)
		. " $repo$sub"));

	return 'e' . ($n % 10000000000);
}

my $plain = epoch_of(-2, 0, '', '');

like($plain, qr/^e\d{1,10}\z/, 'up to ten digits');
is(endpoint('/plain'), "$api/$plain", 'without the directive');
is(endpoint('/with/off'), "$api/$plain", 'off');
is(endpoint('/with/number'), "$api/" . epoch_of(3, 0, '', ''), 'a number');
is(endpoint('/zero'), "$api/" . epoch_of(0, 0, '', ''), 'the number 0');
is(endpoint('/with/scope?scope=write'), endpoint('/with/both'),
	'inherited, a token that may write');
is(endpoint('/with/scope?scope=read'), $api,
	'no epoch for a token that may only read');
is(endpoint('/url?url=https://cas.example.com/x/'), 'https://cas.example.com/x/'
	. epoch_of(1795300000, 0, '', ''), 'after xet_token_cas_url');

# repo and subject

my %who = map { $_ => endpoint("/who?$_") } 'repo=a/b&sub=ann', 'repo=a/b',
	'sub=ann', 'repo=a/b&sub=ben', 'repo=a/c&sub=ann', 'repo=a/ba&sub=nn';

is(scalar(keys %{ { reverse %who } }), keys %who, 'all callers differ');
is(endpoint('/who?repo=a/b&sub=ann'), $who{'repo=a/b&sub=ann'},
	'the same caller, again');
is($who{'repo=a/b&sub=ann'}, "$api/" . epoch_of(-2, 0, 'a/b', 'ann'),
	'repo and subject');
is($t->get('/who?repo=' . ('a' x 300))->{status}, 400, 'an invalid repo');
is($t->get('/who?sub=' . ('a' x 300))->{status}, 400, 'an invalid subject');

# the period may change during the request

sub starts {
	my ($period, @at) = @_;

	return map { int($_ / $period) * $period } @at;
}

for my $case ([ '/minute', -2, 60 ], [ '/odd', 99, 61 ],
	[ '/period', -2, 14 * 86400 ], [ '/zero-period', 0, 14 * 86400 ],
	[ '/with/both', 7, 14 * 86400 ], [ '/year', -2, 366 * 86400 ])
{
	my ($uri, $number, $period) = @$case;

	my $before = time();
	my $got = endpoint($uri);
	my %may = map { ("$api/" . epoch_of($number, $_, '', '') => 1) }
		starts($period, $before - 1, time());

	ok($may{$got}, "$uri: number and period") or diag($got);
	is($t->get($got =~ s!.*(?=/api)!!r . '/v1/health')->{status}, 200,
		"$uri: a path of the API");
}

# what clients may remember was lost

my $before = endpoint('/who?repo=a/b&sub=ann');

$t->sql('SELECT xet.clients_forget()');

my $after = endpoint('/who?repo=a/b&sub=ann');

isnt($after, $before, 'xet.clients_forget()');

$t->sql('SELECT xet.copy_ids_anew()');
isnt(endpoint('/who?repo=a/b&sub=ann'), $after, 'a copy of the database');

$after = endpoint('/who?repo=a/b&sub=ann');

my $other = endpoint('/who?repo=a/b&sub=ben');

$t->sql("SELECT xet.caller_refused('a/b', 'ann')");

isnt(endpoint('/who?repo=a/b&sub=ann'), $after, 'the caller was refused');
is(endpoint('/who?repo=a/b&sub=ben'), $other, 'another caller was not');

$t->sql("UPDATE xet.refused SET at = at - interval '59 days'");
$t->sql('SELECT xet.sweep()');
isnt(endpoint('/who?repo=a/b&sub=ann'), $after, 'refused 59 days ago');
$t->sql("UPDATE xet.refused SET at = at - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is(endpoint('/who?repo=a/b&sub=ann'), $after, 'forgotten after 60 days');

# the token is valid at its endpoint, for an upload and a download

my $token = $t->get('/with/both')->json();
my $closed = $token->{casUrl} =~ s!.*/api!/closed!r;
my %auth = (Authorization => "Bearer $token->{accessToken}");
my $put = $t->http('PUT', "$closed/v1/files", { %auth }, 'x' x 100000);

is($put->{status}, 200, 'a file, with its token') or diag($put->{body});

my $hash = $put->json()->{hash};

is($t->get("$closed/v1/files/$hash", { %auth })->{body}, 'x' x 100000,
	'and is downloaded');
is($t->get("$closed/v1/files/$hash")->{status}, 401, 'refused without a token');
is($t->get("/closed/e1/e2/v1/files/$hash")->{status}, 401,
	'an unknown path needs a token, too');

my $plan = $t->get("$closed/v2/reconstructions/$hash", { %auth })->json();

unlike((values %{ $plan->{xorbs} })[0][0]{url}, qr!/e\d!,
	'URLs of data have no epoch');

is($t->get('/e5/deep/v1/health')->{status}, 200, 'a base like an epoch');
is($t->get('/e5/deep/e6/v1/health')->{status}, 200,
	'an epoch after such a base');
is($t->get('/e5/deep/e6/e7/v1/health')->{status}, 404, 'one epoch at most');

# variables

$t->reload();

my %routes = map { /^(\S+) (.*)/ } split(/\n/, $t->read_file('routes.log'));

is($routes{"$closed/v1/files"}, 'files write', '$xet_route and $xet_scope');
is($routes{'/closed/e1/e2/v1/files/' . $hash}, '- -', 'no route');

# --------------------------------------------------------------------------
# cross-origin pages, and limits

my $r = $t->http('OPTIONS', "$closed/v1/shards", {
	Origin => 'https://hub.example',
	'Access-Control-Request-Method' => 'POST' });

is($r->{status}, 204, 'a preflight request');
is($r->header_value('Access-Control-Allow-Origin'), 'https://hub.example',
	'its response');

$t->allow(qr/over "bytes"|too_many_bytes|over the limit/);

my @xorbs = map { make_xorb(random_bytes($_, 400000)) } 1 .. 4;
my @status = map { $t->http('POST', (qw! /limited /limited/e1 /limited/e2
	/limited/e3 !)[$_] . "/v1/xorbs/default/$xorbs[$_]{hash}",
	{ 'X-Who' => 'a' }, \$xorbs[$_]{bytes})->{status} } 0 .. 3;

is_deeply(\@status, [ 200, 200, 429, 429 ],
	'bytes are counted whatever the epoch');

# --------------------------------------------------------------------------
# the shipped configuration: large bodies, with and without an epoch in the path

$t->write_conf($t->shipped_conf());
$t->reload();

my $large = 'x' x (81 << 20);

$t->allow(qr/client intended to send too large body/);

sub large {
	my ($server, $name) = @_;

	for my $epoch ('', '/e0', '/e1795300000') {
		for my $version ('', '/v1') {
			my $uri = "/api$epoch$version/files";
			my $r = $server->http('PUT', $uri, {}, \$large);

			is($r->{status}, 200, "$name: 81 MiB to $uri")
				or diag(substr($r->{body}, 0, 200));
		}

		is($server->http('POST', "/api$epoch/v1/shards",
			{ 'Content-Length' => 81 << 20 })->{status}, 413,
			"$name: a shard of that size, $epoch");
	}

	my $r = $server->put('/api/e1/e2/files', 'x');

	is($r->{status}, 404, "$name: two epochs");
	like($r->{body}, qr/no such route/, "$name: the error");
}

large($t, 'shipped');

my $file = $t->upload(mix(1, 300000));

is($t->post("/api/e7/v$_/shards", \$file->{shard})->{status}, 200,
	"shipped: a shard, v$_") for 1, 2;

for my $x (@{ $file->{xorbs} }) {
	is($t->post("/api/e7/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'shipped: a xorb');
}

is(length($t->get("/api/e7/v1/files/$file->{hash}")->{body}), 300000,
	'shipped: a file');

# the command-line client

my $path = $t->write_file('up', mix(2, 1_000_000));
my $done = xet($t, { endpoint => $t->url('/api/e7') }, 'put', '--json', $path);

is($done->{code}, 0, 'xet put') or diag($done->{err});
$done = xet($t, { endpoint => $t->url('/api/e8') }, 'get', '-o', "$path-out",
	$done->{json}[0]{hash});
is($done->{code}, 0, 'xet get') or diag($done->{err});
ok($t->read_file('up') eq $t->read_file('up-out'), 'the downloaded file');

# --------------------------------------------------------------------------
# the shipped edge configuration verifies uploads even with an epoch in the
# path

my $edge = Test::Xet::Edge::edge($t);

$edge->run();
$edge->allow(qr/client intended to send too large body|invalid_xorb/);
large($edge, 'edge');

my $x = make_xorb(random_bytes(9, 100000));
my $bad = $x->{bytes};

substr($bad, 50000, 1) ^= "\x20";

my $from = $t->log_size();

for my $epoch ('', '/e7') {
	my $uri = "/api$epoch/v1/xorbs/default/$x->{hash}";
	my $r = $edge->post($uri, \$bad);

	is($r->{status}, 400, "edge: a bad xorb to $uri");
	like($edge->log(), qr/hash_mismatch.*POST \Q$uri\E /,
		'edge: refused by the edge');
	is($edge->post($uri, \$x->{bytes})->{status}, 200, 'edge: a good xorb');
}

unlike(substr($t->log(), $from), qr/hash_mismatch/,
	'not sent to the origin');

# open_file_cache keeps files open that done() would report as a leak

$t->write_conf(undef);
$t->reload();

$edge->check();
$t->done();
