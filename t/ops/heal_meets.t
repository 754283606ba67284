#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Concurrent heals and commits, with each default isolation level of PostgreSQL;
# damage that is found while a shard waits; heals that wait for a lock.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;

# --------------------------------------------------------------------------
# a heal that waits for the commit of a shard sees the committed rows

for my $level ('read committed', 'repeatable read', 'serializable') {
	my $t = Test::Xet->new(workers => 2, log => 'info',
		pg_conf => "default_transaction_isolation = '$level'\n");

	$t->run();
	$t->allow(qr/can't be read/, qr/is missing or has another size/);

	my $data = random_bytes(4, 100_000);
	my ($x, $y) = map { encoded($data, $_) } qw/ none bg4 /;

	is(upload($t, $x)->{status}, 200, "$level: sent");

	my $shard = shard($x, 1, 4);
	my $lock = $t->pg_lock('xet.chunks', 'SHARE ROW EXCLUSIVE');
	my $c = begin($t, '/api/v1/shards', $shard->{bytes});

	ok(wait_for(10, sub { $t->pg_blocked() == 1 }),
		"$level: the commit has its terms, and waits");

	$t->remove_copy($t->copy($x->{hash}));

	my $h = begin($t, "/api/v1/xorbs/default/$y->{hash}", $y->{bytes});

	ok(wait_for(10, sub { $t->pg_blocked() == 2 }),
		"$level: the heal waits for it");

	$lock->unlock();

	my ($r, $s) = map { $_->response('POST', timeout => 30) } $c, $h;

	is($r->{status}, 200, "$level: the commit")
		or diag($r->summary());

	# on a slow machine the heal may have given up

	like($s->{status}, qr/^(?:200|503)$/, "$level: the heal")
		or diag($s->summary());
	is(upload($t, $y)->{status}, 200, "$level: once more");

	my $d = $t->download($shard->{files}[0]{hash}, size => 3 * 8192);

	is_deeply($d->{errors}, [], "$level: plan and data URLs");
	ok($t->get("/api/v1/files/$shard->{files}[0]{hash}")->{body}
		eq substr($data, 8192, 3 * 8192), "$level: readable");

	$_->close() for $c, $h;
	$t->check();
	$t->remove();
}

# --------------------------------------------------------------------------
# a waiting shard is refused if damage is found in the meantime

my $t = Test::Xet->new(workers => 2, log => 'info');

$t->run();
$t->allow(qr/can't be read/, qr/is missing or has another size/);

{
	my $x = send_xorb($t, random_bytes(3, 100_000), sizes => [ 8192 ]);
	my $one = register_file($t, [ [ $x ] ]);
	my $shard = shard($x, 1, 4);
	my $lock = $t->pg_lock('xet.staged');
	my $c = begin($t, '/api/v1/shards', $shard->{bytes});

	ok(wait_for(10, sub { $t->pg_blocked() }), 'damage: the commit waits');

	$t->flip_copy($t->copy($x->{hash}), 5000);

	is($t->get("/api/v1/files/$one->{hash}")->{status}, 500,
		'damage: a reader meets it');
	$lock->unlock();

	my $r = $c->response('POST', timeout => 30);

	is($r->{status}, 503, 'damage: not committed') or diag($r->summary());
	is($t->get("/api/v1/files/$shard->{files}[0]{hash}")->{status}, 404,
		'damage: not registered');
	is($t->post('/api/v1/shards', \$shard->{bytes})->refusal()->[2],
		'unknown_xorb', 'damage: the xorb is to be sent');
	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'damage: sent');
	is($t->post('/api/v1/shards', \$shard->{bytes})->{status}, 200,
		'damage: committed');
	$c->close();
}

# --------------------------------------------------------------------------
# heals that wait for a lock give up, and a later upload heals the xorb

{
	my $data = random_bytes(5, 100_000);
	my $x = send_xorb($t, $data, sizes => [ 8192 ]);
	my $file = register_file($t, [ [ $x ] ]);

	$t->remove_copy($t->copy($x->{hash}));

	# another session's lock on the rows delays the heals

	my $hold = $t->pg_session();

	$hold->send('BEGIN');
	$hold->send('SELECT id FROM xet.xorbs FOR UPDATE');
	$hold->wait();

	my @c = map { begin($t, "/api/v1/xorbs/default/$x->{hash}",
		$x->{bytes}) } 1 .. 12;

	ok(wait_for(10, sub { $t->pg_blocked() >= 4 }), 'heals wait');

	my @status = map { $_->response('POST', timeout => 60)->{status} } @c;

	is(join(' ', @status), join(' ', (503) x 12),
		'and clients get 503');
	$hold->send('ROLLBACK');
	$hold->wait();

	is($t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes})
		->{status}, 200, 'healed then');
	ok($t->get("/api/v1/files/$file->{hash}")->{body} eq $data,
		'readable');
	$_->close() for @c;
}

# --------------------------------------------------------------------------
# a heal changes only complete terms of the xorb, whatever bytes are around them

{
	my $hash = 'ab' x 32;
	my $other = 'ab' x 31 . 'cd';
	my $ends = join('', map { number(4, 100 * $_) } 1 .. 4);
	my $tail = '00000000' . '11111111' . '22222222' . '33333333';

	for my $case (
		[ 'none', term($other, 0, 1) ],
		[ 'one', term($hash, 0, 2), moved(0, 2, 0, 200) ],
		[ 'the last chunk', term($hash, 3, 4), moved(3, 4, 300, 400) ],
		[ 'between', term($other, 0, 1) . term($hash, 1, 3)
			. term($other, 1, 2), term($other, 0, 1)
			. moved(1, 3, 100, 300) . term($other, 1, 2) ],
		[ 'twice', term($hash, 0, 1) x 2, moved(0, 1, 0, 100) x 2 ],
		[ 'across', term('ab' x 32, 0, 1) =~ s/^(.{64})/'00' x 32/er
			=~ s/.{40}$/'ab' x 20/er . term('ab' x 12 . '00' x 20,
			0, 1) . term($hash, 1, 2), undef ])
	{
		my ($name, $packed, $want) = @$case;

		if ($name eq 'across') {
			my $last = term($hash, 1, 2);

			$want = substr($packed, 0, -length($last))
				. moved(1, 2, 100, 200);
		}

		is($t->sql("SELECT encode(xet.terms_moved('\\x$packed',"
			. " '\\x$hash', '\\x$ends', 1), 'hex')"),
			$want // $packed, "moved: $name");
	}
}

$t->done();

# --------------------------------------------------------------------------

sub encoded {
	my ($data, $scheme) = @_;

	return make_xorb($data, scheme => $scheme, sizes => [ 8192 ]);
}

sub upload {
	my ($t, $x) = @_;

	return $t->post("/api/v1/xorbs/default/$x->{hash}", \$x->{bytes});
}

sub shard {
	my ($x, $start, $end) = @_;

	return make_shard({ files => [ { terms => [ { xorb => $x->{hash},
		start => $start, end => $end } ] } ],
		xorbs => [ { %$x, raw => '', bytes => '' } ] });
}

sub begin {
	my ($t, $uri, $body) = @_;

	return $t->http_start('POST', $uri,
		{ 'Content-Length' => length($body) }, $body);
}

# The functions below make packed terms in hex: hash, chunks, stored bytes, raw
# length, copy id.

sub number {
	my ($n, $value) = @_;

	return unpack('H*', substr(pack('V', $value), 0, $n));
}

sub term {
	my ($hash, $start, $end) = @_;

	return $hash . number(2, $start) . number(2, $end - 1) . number(4, 7777)
		. number(4, 8888) . number(4, 4096) . number(4, 9);
}

sub moved {
	my ($start, $end, $from, $to) = @_;

	return 'ab' x 32 . number(2, $start) . number(2, $end - 1)
		. number(4, $from) . number(4, $to) . number(4, 4096)
		. number(4, 1);
}
