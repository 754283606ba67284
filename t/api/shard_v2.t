#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# POST v2/shards sends correct frames while the database is slow.  It responds
# with an error status if the request fails before the first frame is sent.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience /;

use JSON::PP ();

my $t = Test::Xet->new(workers => 2, server => 'xet_progress_interval 1s;',
	pg_params => 'lock_timeout=5m',
	allow => [ qr/did not respond/ ]);

$t->run();

# --------------------------------------------------------------------------
# a fast database: the only frame is the result

my $xorb = xorb(1, 300000);
my $shard = shard($xorb);
my $r = post($shard->{bytes});

is($r->{status}, 200, 'quick: status');
is($r->header_value('Content-Type'), 'application/x-ndjson', 'quick: type');
is($r->header_value('Cache-Control'), 'no-cache', 'quick: not cached');

my @frames = @{ $r->frames() };

is($frames[-1]{data}{type}, 'result', 'quick: the result is last');
is($frames[-1]{data}{result}, 1, 'quick: registered');
is($t->head("/api/v1/files/$shard->{files}[0]{hash}")->{status}, 200,
	'quick: the file exists');
is(post($shard->{bytes})->frames()->[-1]{data}{result}, 0, 'again: known');

# --------------------------------------------------------------------------
# an error that is found before the first frame becomes the status

$r = post('x' x 100);

is($r->{status}, 400, 'no shard: status');
is($r->json()->{error}{code}, 'invalid_shard', 'no shard: code');

$r = post(shard($xorb, hash => 'ab' x 32)->{bytes});

is($r->{status}, 400, 'wrong file hash: status');
is($r->json()->{error}{code}, 'hash_mismatch', 'wrong file hash: code');

# --------------------------------------------------------------------------
# a slow database: frames keep coming, the last one is the result

$xorb = xorb(2, 300000);
$shard = shard($xorb);

my $lock = $t->pg_lock('xet.files');
my $c = $t->http_start('POST', '/api/v2/shards',
	{ 'Content-Length' => length($shard->{bytes}) }, $shard->{bytes});

wait_for(10, sub { $t->sql("select count(*) from pg_locks where not granted")
	> 0 });
select(undef, undef, undef, 3.2);
$lock->unlock();

$r = $c->response();
@frames = @{ $r->frames() };

is($r->{status}, 200, 'slow: status');
cmp_ok(scalar(@frames), '>=', 4, 'slow: several frames');
is($frames[-1]{data}{type}, 'result', 'slow: the result is last');

my %stages = map { $_->{data}{stage} => 1 }
	grep { $_->{data}{type} eq 'committing' } @frames;

is_deeply([ sort keys %stages ], [ 'syncing' ], 'slow: stages');

my @gaps = map { $frames[$_]{time} - $frames[$_ - 1]{time} } 1 .. $#frames;

ok(!(grep { $_ > patience(2.5) } @gaps), 'slow: no long pause')
	or diag("gaps: @gaps");
is($t->head("/api/v1/files/$shard->{files}[0]{hash}")->{status}, 200,
	'slow: the file exists');

# --------------------------------------------------------------------------
# the database stops in the middle: an error frame that asks for a retry

$t->write_conf(undef, directives => {
	xet_postgres => '"' . $t->conninfo() . '" write_timeout=2s writes=1'
});
$t->reload();

$xorb = xorb(3, 300000);
$shard = shard($xorb);
$lock = $t->pg_lock('xet.files');

$r = post($shard->{bytes});
@frames = @{ $r->frames() };

is($r->{status}, 200, 'gone: frames have begun');
is($frames[-1]{data}{type}, 'error', 'gone: an error frame');
ok($frames[-1]{data}{retryable}, 'gone: retryable');
is(ref($frames[-1]{data}{retryable}), 'JSON::PP::Boolean', 'gone: a boolean');

$lock->unlock();

is(post($shard->{bytes})->frames()->[-1]{data}{type}, 'result',
	'gone: the retry succeeds');

# --------------------------------------------------------------------------
# a client that disconnects in mid-stream

$t->write_conf(undef, directives => {});
$t->reload();
$t->fds_mark();

$xorb = xorb(4, 300000);
$shard = shard($xorb);
$lock = $t->pg_lock('xet.files');

$c = $t->http_start('POST', '/api/v2/shards',
	{ 'Content-Length' => length($shard->{bytes}) }, $shard->{bytes});
select(undef, undef, undef, 1.5);
$c->abort();
$lock->unlock();

is(post($shard->{bytes})->frames()->[-1]{data}{type}, 'result',
	'client gone: the next one is served');

$t->done();

# --------------------------------------------------------------------------

sub post {
	my ($bytes) = @_;

	return $t->post('/api/v2/shards', \$bytes, {}, timeout => 30);
}

sub xorb {
	my ($seed, $size) = @_;

	return $t->put_xorb(random_bytes($seed, $size));
}

sub shard {
	my ($x, %file) = @_;

	return make_shard({ files => [ { verification => JSON::PP::true,
		terms => [ { xorb => $x->{hash}, start => 0,
			end => scalar(@{ $x->{chunks} }),
			chunks => $x->{chunks} } ], %file } ],
		xorbs => [] });
}
