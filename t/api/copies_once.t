#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Many uploads of a known xorb: the server reads the stored copy once for all
# uploads that began before that read, and again for uploads that begin later.
# While one upload reads, other uploads wait.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ slurp wait_for /;

use Time::HiRes qw/ time /;

Test::Xet->folder('how many bytes of files are read');

my $t = Test::Xet->new(workers => 1, threads => 4, stalls => 1, log => 'info');
$t->run();

my $size = 3_000_000;
my $seed = 0;
my $true = '200 {"was_inserted":true}';
my $false = '200 {"was_inserted":false}';

my ($worker) = $t->worker_pids();

# Returns the number of bytes that the worker has read from files.

sub bytes_read {
	my ($n) = slurp("/proc/$worker/io") =~ /^rchar: (\d+)/m
		or die "/proc/$worker/io\n";

	return $n;
}

sub new_xorb {
	return make_xorb(random_bytes(++$seed, $size), scheme => 'none',
		sizes => [ 65536 ]);
}

sub half {
	my ($x) = @_;

	return $t->http_start('POST', "/api/v1/xorbs/default/$x->{hash}",
		{ 'Content-Length' => length($x->{bytes}) },
		substr($x->{bytes}, 0, $size / 2));
}

sub rest {
	my ($c, $x) = @_;

	$c->send(substr($x->{bytes}, $size / 2));

	my $answer = $c->response('POST', timeout => 60)->summary();
	$c->close();

	return $answer;
}

sub whole {
	my ($x) = @_;

	return rest(half($x), $x);
}

# Repeats the test if the machine was too slow for a limit of five seconds.

sub in_time {
	my ($what) = @_;

	for (1 .. 10) {
		my $end = time() + 4;
		my @seen = $what->();

		return @seen if time() < $end;
	}

	die "this machine is too slow\n";
}

# --------------------------------------------------------------------------
# the copy is read once; the first upload needs no read

my $x = new_xorb();
my $before = bytes_read();

is(whole($x), $true, 'a new xorb');
cmp_ok(bytes_read() - $before, '<', $size / 2, 'a new xorb: no read');

for my $round (1 .. 2) {
	$before = bytes_read();
	is(whole($x), $false, "round $round: known");
	cmp_ok(bytes_read() - $before, '>=', $size, 'the copy is read');
}

my ($answers, $first, $others) = in_time(sub {
	my @c = map { half($x) } 1 .. 8;
	my $start = bytes_read();

	my @answers = rest(shift(@c), $x);
	my $first = bytes_read();

	push @answers, map { rest($_, $x) } @c;

	return (join(' ', @answers), $first - $start, bytes_read() - $first);
});

is($answers, join(' ', ($false) x 8), 'eight at once');
cmp_ok($first, '>=', $size, 'the first of eight reads');
cmp_ok($others, '<', $size / 2, 'the others do not read');

$before = bytes_read();
is(whole($x), $false, 'a later upload');
cmp_ok(bytes_read() - $before, '>=', $size, 'a later upload reads again');

# --------------------------------------------------------------------------
# the same file by PUT; without dedup the server can't skip known chunks

$t->write_conf(undef, directives => { xet_dedup_key => undef });
$t->reload();
($worker) = $t->worker_pids();

my $data = random_bytes(++$seed, $size);

sub put_half {
	return $t->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => $size }, substr($data, 0, $size / 2));
}

sub put_rest {
	my ($c) = @_;

	$c->send(substr($data, $size / 2));

	my $status = $c->response('PUT', timeout => 60)->{status};
	$c->close();

	return $status;
}

is(put_rest(put_half()), 200, 'a file');

$before = bytes_read();
is(put_rest(put_half()), 200, 'again');
cmp_ok(bytes_read() - $before, '>=', $size, 'the copy is read');

($answers, $first, $others) = in_time(sub {
	my @c = map { put_half() } 1 .. 4;
	my $start = bytes_read();

	my @answers = put_rest(shift(@c));
	my $first = bytes_read();

	push @answers, map { put_rest($_) } @c;

	return ("@answers", $first - $start, bytes_read() - $first);
});

is($answers, '200 200 200 200', 'four at once');
cmp_ok($first, '>=', $size, 'the first of four reads');
cmp_ok($others, '<', $size / 2, 'the others do not read');

# --------------------------------------------------------------------------
# damage after a read: an upload that begins later finds the damage; an upload
# that began before the damage gets the repaired copy, which was not read yet

for my $kind ('a bit', 'gone', 'cut') {
	my $y = new_xorb();

	is(whole($y), $true, "$kind: new");

	my $c = half($y);

	is(whole($y), $false, "$kind: read, and intact");

	my $copy = $t->copy($y->{hash});

	if ($kind eq 'a bit') {
		$t->flip_copy($copy, 5000);

	} elsif ($kind eq 'gone') {
		$t->remove_copy($copy);

	} else {
		$t->cut_copy($copy, 1000);
	}

	is(whole($y), $false, "$kind: a later upload");
	ok($t->wait_log(qr/xorb $y->{hash} was repaired by an upload/, 1),
		"$kind: healed");
	isnt($t->copy($y->{hash}), $copy, "$kind: another copy");

	$before = bytes_read();
	is(rest($c, $y), $false, "$kind: an earlier upload");
	cmp_ok(bytes_read() - $before, '>=', $size, "$kind: reads again");

	is($t->copy_bytes($t->copy($y->{hash})), $y->{bytes}, "$kind: intact");
}

# --------------------------------------------------------------------------
# while one upload reads the copy, other uploads wait for the result, however
# the request of the first upload ends

my $stall = $t->stall();

# Starts five uploads at the same time.  The first one still reads the copy when
# the last bytes of the other uploads arrive.

sub five {
	my ($start, $end, $meanwhile) = @_;

	my @c = map { $start->() } 1 .. 5;

	$stall->hold('read');
	$end->($c[0]);
	ok($stall->wait_held('read', 1), 'one upload reads');

	$end->($_) for @c[1 .. 4];
	select(undef, undef, undef, 0.5);
	ok(!$stall->wait_held('read', 2, 0.1), 'the other uploads wait');

	my $before = bytes_read();

	$meanwhile->(\@c);
	$stall->release('read');

	my @answers = map { $_->response('POST', timeout => 60)->{status} } @c;

	$_->close() for @c;

	return ("@answers", bytes_read() - $before);
}

for my $way ('POST', 'PUT') {
	my $y = new_xorb();
	my ($hash, $start, $end);

	if ($way eq 'POST') {
		whole($y);
		$hash = $y->{hash};
		$start = sub { half($y) };
		$end = sub { $_[0]->send(substr($y->{bytes}, $size / 2)) };

	} else {
		$data = random_bytes(++$seed, $size);
		put_rest(put_half());
		$hash = $t->reconstruct($t->http('PUT', '/api/v1/files', {},
			\$data)->json()->{hash})->{plan}{terms}[0]{hash};
		$start = \&put_half;
		$end = sub { $_[0]->send(substr($data, $size / 2)) };
	}

	my ($answers, $read) = five($start, $end, sub { });

	is($answers, '200 200 200 200 200', "$way: five");
	cmp_ok($read, '<', 1.5 * $size, "$way: read once");

	($answers, $read) = five($start, $end, sub {
		my ($c) = @_;
		splice(@$c, 2, 1)->abort();
	});

	is($answers, '200 200 200 200', "$way: a waiting client disconnects");
	cmp_ok($read, '<', 1.5 * $size, "$way: read once");

	($answers, $read) = five($start, $end, sub {
		my ($c) = @_;
		shift(@$c)->abort();
	});

	is($answers, '200 200 200 200', "$way: the reading client disconnects");
	cmp_ok($read, '<', 2.5 * $size, "$way: another upload reads");

	my $healed = () = $t->log() =~ /xorb $hash was repaired/g;
	my $copy = $t->copy($hash);

	($answers, $read) = five($start, $end, sub {
		$t->flip_copy($copy, -5);
	});

	is($answers, '200 200 200 200 200', "$way: damage");

	ok(wait_for(10, sub { $t->copies($hash) == 1 }),
		"$way: one copy is left");
	isnt($t->copy($hash), $copy, "$way: another copy");
	is((() = $t->log() =~ /xorb $hash was repaired/g) - $healed, 1,
		"$way: healed once");
	is($t->copy_bytes($t->copy($hash)), $y->{bytes}, "$way: and intact")
		if $way eq 'POST';

	($answers, $read) = five($start, $end, sub {
		$t->pg_stop('immediate');
		$t->pg_start();
	});

	# a PUT may also fail in its other statements

	like($answers, $way eq 'POST' ? qr/^200( 200){4}$/
		: qr/^(200|503)( (200|503)){4}$/, "$way: PostgreSQL restarts");
	ok(wait_for(10, sub {
		$t->get('/api/health')->{status} == 200
	}), "$way: PostgreSQL is back");

	($answers, $read) = five($start, $end, sub {
		my ($c) = @_;
		$_->abort() for splice(@$c);
	});

	is($answers, '', "$way: all clients disconnect");
	is($t->get('/api/health')->{status}, 200, "$way: health");
}

# damage is recorded even if the client has disconnected

{
	my $y = new_xorb();

	whole($y);

	my $copy = $t->copy($y->{hash});
	my $c = half($y);

	$stall->hold('read');
	$c->send(substr($y->{bytes}, $size / 2));
	ok($stall->wait_held('read', 1), 'disconnected: it reads');

	$t->flip_copy($copy, -5);
	$c->abort();
	select(undef, undef, undef, 0.5);
	$stall->release('read');

	ok(wait_for(10, sub {
		$t->sql('SELECT count(*) FROM xet.xorbs'
			. ' WHERE damaged_at IS NOT NULL') == 1
	}), 'disconnected: damage is recorded');
	is(whole($y), $false, 'disconnected: sent again');
	ok(wait_for(10, sub { $t->copies($y->{hash}) == 1 }),
		'disconnected: one copy is left');
	is($t->copy_bytes($t->copy($y->{hash})), $y->{bytes},
		'disconnected: healed');
}

# uploads in other encodings or of other xorbs do not use the result of a read

{
	my $raw = random_bytes(++$seed, 100_000) x 30;
	my ($y, $z) = map { make_xorb($raw, scheme => $_, sizes => [ 65536 ]) }
		qw/ none lz4 /;
	my $other = new_xorb();

	is(whole($_), $true, 'new') for $y, $other;

	my $c = half($other);

	is(whole($y), $false, 'one encoding is read');
	$before = bytes_read();
	is(rest($c, $other), $false, 'the other encoding');
	cmp_ok(bytes_read() - $before, '>=', $size, 'is read as well');

	is($t->post("/api/v1/xorbs/default/$z->{hash}", \$z->{bytes})
		->summary(), $false, 'known in another encoding');
	is($t->copy_bytes($t->copy($y->{hash})), $y->{bytes},
		'the first copy stays');
}

$t->done();
