#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two nodes, each a separate nginx, with one store and one database: PUTs of
# the same file arrive at both at once, also beside the same xorb, while all
# sessions end, and while a worker is killed.  A file of one xorb is stored in
# one statement: there must be one row of each kind, one copy, and exact sums,
# and both nodes must serve the file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ wait_for /;

my $rounds = 12;
my $clients = 2;
my $seed = 0;

my $t = Test::Xet->new(workers => 2, log => 'info');
$t->run();

my $other = Test::Xet->new(workers => 2, log => 'info', beside => $t);
$other->run();

my @nodes = ($t, $other);
my (@files, @new, %answers, $waited);

$_->fds_mark() for @nodes;

# --------------------------------------------------------------------------
# at once

for my $round (1 .. $rounds) {
	my $data = random_bytes(++$seed, $round % 3 ? 2048 : 300_000);
	my @c = puts($data);

	$waited += locked('xet.xorbs', \@c) if $round % 2;
	answered("at once, $round", $data, @c);
}

is($waited, $rounds / 2 * @nodes * $clients, 'all statements waited together');
is(join(' ', map { $_ > 0 ? 1 : 0 } @new), join(' ', (1) x $rounds),
	'at least one PUT of a file says that it is new');
stored('at once');

# --------------------------------------------------------------------------
# a file at one node, its xorb at the other

for my $round (1 .. 6) {
	my $data = random_bytes(++$seed, 2048);
	my $file = $t->upload($data, send => 0);
	my $x = $file->{xorbs}[0];
	my ($one, $two) = $round % 2 ? @nodes : reverse(@nodes);
	my @c = (put_start($one, $data), [ $two->http_start('POST',
		"/api/v1/xorbs/default/$x->{hash}",
		{ 'Content-Length' => length($x->{bytes}) },
		substr($x->{bytes}, 0, -1)), substr($x->{bytes}, -1) ]);

	$waited = locked('xet.xorbs', \@c);
	is($waited, 2, "a xorb beside, $round: both wait");
	answered("a xorb beside, $round", $data, @c);
}

stored('a xorb beside');

# --------------------------------------------------------------------------
# all sessions end during the statements, which the nodes then repeat

$_->allow(qr/terminat|connection|closed|lost|PostgreSQL/i) for @nodes;

for my $round (1 .. 6) {
	my $data = random_bytes(++$seed, 2048);
	my @c = puts($data);

	locked('xet.xorbs', \@c, sub { $t->pg_terminate() });
	answered("sessions end, $round", $data, @c);
}

stored('sessions end');

# --------------------------------------------------------------------------
# a worker is killed during the statements; only the collector removes its copy

my $data = random_bytes(++$seed, 2048);
my @c = map { put_start($other, $data) } 1 .. $clients;

$other->allow(qr/signal 9|exited/);
locked('xet.xorbs', \@c, sub {
	$other->kill_worker();
	answered('a worker is killed', $data, put_start($t, $data, 1));
}, 1);
$_->[0]->close() for @c;

stored('a worker is killed', $clients);

is(join(' ', %answers), '200 ' . (($rounds + 6) * @nodes * $clients + 6 * 2
	+ 1), 'each request is accepted');

$t->check_fds();
$other->stop();
$t->done();

# --------------------------------------------------------------------------

sub put_start {
	my ($node, $data, $all) = @_;

	return [ $node->http_start('PUT', '/api/v1/files',
		{ 'Content-Length' => length($data) },
		$all ? $data : substr($data, 0, -1)),
		$all ? '' : substr($data, -1) ];
}

sub puts {
	my ($data) = @_;

	return map { put_start($_, $data) } (@nodes) x $clients;
}

# Completes the requests, waits until their statements wait for a lock, runs
# $then, and unlocks.  Returns how many waited.

sub locked {
	my ($table, $c, $then, $early) = @_;

	my $lock = $t->pg_lock($table);
	my $n;

	$_->[0]->send($_->[1]) for @$c;
	$_->[1] = '' for @$c;

	wait_for(10, sub { ($n = $t->pg_blocked()) == @$c });

	if ($early) {
		$lock->unlock();
		$then->();

	} else {
		$then->() if $then;
		$lock->unlock();
	}

	return $n;
}

# Reads the responses.

sub answered {
	my ($name, $data, @c) = @_;

	my ($new, %hash) = (0);

	for (@c) {
		$_->[0]->send($_->[1]) if length($_->[1]);

		my $r = $_->[0]->response('PUT', timeout => 60);

		$_->[0]->close();

		$answers{$r->{status}}++;

		my $json = $r->json();

		next unless defined $json->{hash};

		$hash{$json->{hash}}++;
		$new++ if $json->{new_bytes};
	}

	is(keys(%hash), 1, "$name: one hash");

	push @files, [ (keys(%hash))[0], $data ];
	push @new, $new;
}

# Compares the rows, the copies, the sums, and what each node serves.  So many
# more copies may have no row.

sub stored {
	my ($name, $more) = @_;

	my $rows = $t->rows();
	my $wrong = '';

	is($rows->{files}, @files, "$name: one row a file");
	is($rows->{xorbs}, @files, "$name: one row a xorb");
	is($t->sql('SELECT count(*) FROM xet.file_xorbs'), @files,
		"$name: one reference a file");
	is($t->sql('SELECT count(*) FROM xet.charges'), @files,
		"$name: one charge a xorb");
	is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
		"$name: counted exactly");
	ok(wait_for(20, sub { my $n = () = $t->files_in_store();
		$n >= @files && $n <= @files + ($more // 0) }),
		"$name: one copy a xorb")
		or diag(scalar(() = $t->files_in_store()) . ' copies');

	for my $file (@files) {
		for my $node (@nodes) {
			my $d = $node->download($file->[0],
				size => length($file->[1]));

			$wrong .= "$file->[0]: @{ $d->{errors} }\n"
				if @{ $d->{errors} }
				|| $d->{data} ne $file->[1];
		}
	}

	is($wrong, '', "$name: both nodes serve all files");
}
