#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The cost of a verification is bounded even for a few kilobytes that decode to
# gigabytes.  The response reports what was skipped, and the next request
# verifies that.  Other requests get the threads in the meantime.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Ztensor;

my $t = Test::Xet->new(
	timeout => 300, main => 'thread_pool reads threads=1;',
	directives => { xet_read_thread_pool => 'reads' },
	server => <<'EOC');

        location /small/ {
            xet_api;
            xet_auth            off;
            xet_api_base        /small;
            xet_ztensor_limits  verify=3m;
        }
EOC

$t->run();

# Returns a zstd frame that repeats one byte n times, without a content size.

sub bomb {
	my ($n, $byte) = @_;

	my $frame = "\x28\xb5\x2f\xfd\x00\x38";

	while (1) {
		my $size = $n < 131072 ? $n : 131072;

		$n -= $size;
		$frame .= substr(pack('V', $size << 3 | 2 | !$n), 0, 3)
			. $byte;
		return $frame unless $n;
	}
}

sub packed {
	my ($name, $size, %o) = @_;

	return [ $name, { shape => [ $size ], dtype => 'u8',
		encoding => 'zstd', data => bomb($size, 'x'), %o } ];
}

sub put { return $t->upload(zt_file($_[0])->{bytes})->{hash} }

sub verify {
	my ($hash, $args) = @_;

	return $t->get("/small/v1/zt/$hash/verify" . ($args // ''));
}

sub objects {
	return [ map { join(' ', values %{ $_->{components} }, $_->{status},
		@{ $_->{errors} }) } @{ $_[0]->{objects} } ];
}

sub kept {
	my ($n) = @_;

	return wait_for(10, sub {
		$t->sql('select count(*) from xet.zt_reports') == $n });
}

# --------------------------------------------------------------------------
# PostgreSQL plans these statements while the tables are empty, and keeps the
# plans: they must not scan the cached results of all files

my $session = 'SET enable_seqscan = off; SET enable_bitmapscan = off;'
	. ' SET plan_cache_mode = force_generic_plan;';

for ([ 'zt_reports_get', 'zt_reports', 'bigint, bigint', '1, 2' ],
	[ 'zt_get', 'zt_files', 'boolean', 'false' ])
{
	my ($function, $table, $types, $values) = @$_;
	my $n = () = $types =~ /\w+/g;
	my $args = join(', ', map { "\$$_" } 1 .. 2 + $n);

	my $plan = $t->sql("$session PREPARE q (bytea, bigint, $types) AS"
		. " SELECT * FROM xet.$function($args);"
		. " EXPLAIN EXECUTE q ('', 1, $values)");

	like($plan, qr/using ${table}_pkey on .*Index Cond: \(\(file_id =/s,
		"$function: by the file") or diag($plan);
}

# --------------------------------------------------------------------------
# 5 MiB of data that is compressed to a few hundred bytes

my $size = 1280 << 10;
my $hash = put([ (map { packed("large $_", $size) } 1 .. 4),
	[ 'raw', { shape => [ 4 ], dtype => 'u8', data => '1234' } ] ]);

my $r = verify($hash);
my $json = $r->json();

is($r->{status}, 200, 'too much data to decode');
is_deeply(objects($json), [ ('absent ok') x 2,
	('not_checked ok verify_too_large') x 2, 'absent ok' ],
	'two and the small one are verified') or diag($r->{body});
ok(defined $json->{ok} && !$json->{ok}, 'not ok');
is($json->{checked}, 3, 'number checked');
is($json->{bytes}, 2 * length(bomb($size, 'x')) + 4, 'their bytes');

# cached results cost nothing; skipped components are not cached

ok(kept(3), 'three results are cached');

$json = verify($hash)->json();

is_deeply(objects($json), [ ('absent ok') x 5 ],
	'the second request verifies the others');
ok($json->{ok}, 'ok is true');
is($json->{checked}, 5, 'all are checked');

# a component that alone exceeds the limit is never verified

$hash = put([ packed('huge', 4 << 20) ]);

for my $args ('', '?name=huge', '?i=0&role=data') {
	$json = verify($hash, $args)->json();

	is_deeply(objects($json), [ 'not_checked ok verify_too_large' ],
		"past the limit: '$args'");
	ok(!$json->{ok}, "not ok: '$args'");
}

is_deeply(objects($t->get("/api/v1/zt/$hash/verify")->json()),
	[ 'absent ok' ], 'verified with another limit');

# --------------------------------------------------------------------------
# lengths that are missing or wrong

my @coo = map { [ $_->[0], { dtype => $_->[1], encoding => 'zstd',
	data => bomb($_->[2], "\0") } ] }
	[ 'coords', 'u8', 2 << 20 ], [ 'values', 'u8', 2 << 20 ];

$hash = put([ [ 's', { format => 'sparse_coo', shape => [ 2 << 20 ],
	components => \@coo } ], packed('small', 1 << 20) ]);

$json = verify($hash)->json();

is(join(' ', map { $json->{objects}[0]{components}{$_} }
	qw/ values coords /), 'absent not_checked',
	'the second exceeds the rest of the limit');
is_deeply($json->{objects}[0]{errors}, [ 'verify_too_large' ],
	'the error is reported');
ok(!$json->{ok}, 'ok is false');
ok($t->get("/api/v1/zt/$hash/verify")->json()->{ok},
	'verified with another limit');

$hash = put([ packed('lies', 2 << 20, data => bomb(64 << 20, 'x')),
	packed('small', 1 << 20) ]);

$json = verify($hash)->json();

is_deeply(objects($json), [ 'unreadable ok length_mismatch', 'absent ok' ],
	'at most the declared length is decoded');

# --------------------------------------------------------------------------
# a part of the file that decodes to gigabytes does not block the only read
# thread

my $data = 'data of another file';
my $file = $t->upload($data)->{hash};

$hash = put([ map { packed("big $_", 256 << 20) } 1 .. 8 ]);

is($t->get("/api/v1/zt/$hash")->json()->{count}, 8, 'eight of 256 MiB');

my $c = $t->http_start('GET', "/api/v1/zt/$hash/verify", {}, undef,
	timeout => 120);
my ($n, $wrong) = (0, 0);

# the response begins when everything is verified, because it is one batch

while ($n < 40 && $c->{buffer} eq '') {
	$wrong++ if $t->get("/api/v1/files/$file")->{body} ne $data;
	$n++;

	$c->fill(0);
}

# with a bucket each of these responses needs several requests to the bucket

cmp_ok($n, '>=', $t->s3() ? 2 : 20, 'answers to others meanwhile');
is($wrong, 0, 'with the right bytes');

$r = $c->response('GET', timeout => 120);
is_deeply(objects($r->json()), [ ('absent ok') x 8 ], 'all of them verify');
ok($r->json()->{ok}, 'ok');

$t->done();
