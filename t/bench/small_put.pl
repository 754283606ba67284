#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures a PUT of a file of 2 KiB: the CPU time of PostgreSQL and of nginx,
# for the upload of an LFS object to a Hub, and for "PUT v1/files".  The first
# hundred PUTs, with empty tables, are compared with the last hundred: no
# statistics of the tables exist, and no plan may depend on them.  All files are
# different.
#
# The unit for comparisons between machines is the smallest transaction that
# stores something: a row of a table with an index, sent by pgbench.
#
#     perl t/bench/small_put.pl [files]
#
# Needs "make build tools cli" and pgbench.  Takes half a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use JSON::PP ();
use POSIX ();

use Test::Xet;
use Test::Xet::Process qw/ run_command slurp spew wait_for /;
use Test::Xet::Token;

my $files = shift || choose(1000, 20);
my $part = $files < 300 ? int($files / 3) : 100;
my $repeats = repeats(3);
my $dir = tempdir(CLEANUP => 1);
my (%m, @unit);

bench_start("PUTs of $files files of 2 KiB, one worker");

my $t = server();

for my $round (1 .. $repeats) {
	my $r = create("m$round");
	my $cas = "Bearer " . $t->get("/api/models/me/m$round/xet-write-token/main")
		->json()->{accessToken};

	measure('LFS', $round, sub { lfs("m$round", @_) });
	measure('PUT v1/files', $round + 100, sub { map { [ '/cas/v1/files', $_,
		{ Authorization => $cas } ] } @_ });
	push @unit, unit();
}

report();
bench_end($t);

# --------------------------------------------------------------------------

sub server {
	my $server = bench_server(
		http => Test::Xet::Token::token_directive()
			. ' xet_chunk_filter zone=xet_chunks:16m;',
		locations => bench_hub());

	$server->token_key();
	$server->run();

	return $server;
}

sub create {
	my ($name) = @_;

	my $r = $t->post('/api/repos/create', \"{\"name\":\"$name\"}",
		{ 'Content-Type' => 'application/json' });

	die $r->summary() if $r->{status} != 200;
}

# Asks for the URLs of LFS objects.  Returns a request for each body.

sub lfs {
	my ($repo, @bodies) = @_;

	my $body = JSON::PP::encode_json({ operation => 'upload',
		transfers => [ 'basic' ], objects => [ map { {
			oid => sha256_hex($_), size => length($_) } } @bodies ] });
	my $r = $t->post("/me/$repo.git/info/lfs/objects/batch", \$body,
		{ 'Content-Type' => 'application/vnd.git-lfs+json' });
	my %url = map { $_->{oid} => $_->{actions}{upload}{href} }
		@{ $r->json()->{objects} };

	return map { [ $url{sha256_hex($_)} =~ s!^http://[^/]+!!r, $_, {} ] }
		@bodies;
}

# Sends the PUTs one after another, over one connection.

sub measure {
	my ($what, $seed, $requests) = @_;

	my @requests = $requests->(map { random_bytes(1000 * $seed + $_, 2048) }
		1 .. $files);
	my ($worker) = $t->worker_pids();
	my $c = $t->connect(timeout => 60);
	my %at = map { $_ => 1 } 0, $part, $files - $part, $files;
	my (%pg, %nginx);

	for my $n (0 .. $files) {
		if ($at{$n}) {
			pin($_, server_cpu()) for pg_pids($t);

			$pg{$n} = cpu_pids(pg_pids($t));
			$nginx{$n} = cpu_us($worker);
		}

		last if $n == $files;

		my $r = $c->exchange('PUT', @{ $requests[$n] }[0, 2],
			\$requests[$n][1]);

		die $r->summary() if $r->{status} != 200;
	}

	$c->close();

	my $into = $m{$what} ||= {};

	push @{ $into->{pg} }, ($pg{$files} - $pg{0}) / $files;
	push @{ $into->{nginx} }, ($nginx{$files} - $nginx{0}) / $files;
	push @{ $into->{first} }, ($pg{$part} - $pg{0}) / $part;
	push @{ $into->{last} }, ($pg{$files} - $pg{$files - $part}) / $part;
	push @{ $into->{ratio} }, $into->{last}[-1] / $into->{first}[-1];
}

# Returns the CPU time of transactions that insert one row.  It is that of
# pgbench's session, which has ended: the postmaster counts it in ticks.

sub unit {
	my $pg = $t->pg();
	my $n = choose(3000, 100);

	$t->sql('CREATE TABLE IF NOT EXISTS xet.unit (hash bytea PRIMARY KEY)');
	$t->sql('GRANT INSERT ON xet.unit TO xet');
	spew("$dir/unit.sql", "\\set a random(1, 9000000000000000000)\n"
		. "INSERT INTO xet.unit VALUES (sha256(int8send(:a)));\n");

	my $before = ended();
	my ($status, $out) = run_command([ 'taskset', '-c', load_cpu(),
		"$pg->{bin}/pgbench", qw/ -n -M prepared -c 1 -t /, $n, '-f',
		"$dir/unit.sql", '-h', $pg->{dir}, '-U', 'xet', 'xet' ]);

	die "pgbench: $out\n" if $status;
	wait_for(10, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE application_name = 'pgbench'") == 0 });

	return (ended() - $before) / $n;
}

sub ended {
	my $stat = slurp('/proc/' . $t->pg()->pid() . '/stat');
	my @fields = split(' ', substr($stat, rindex($stat, ')') + 2));

	return ($fields[13] + $fields[14]) * 1e6
		/ POSIX::sysconf(&POSIX::_SC_CLK_TCK);
}

sub report {
	my @table = [ 'us CPU of a PUT', 'PostgreSQL', 'in units', 'the first',
		'the last', 'last/first', 'nginx' ];

	# 0.136 of what commit 37323adc of this repository takes on the machine
	# of docs/performance.md, measured by turns with this version

	my $goal = 1310;

	for my $what (sort keys %m) {
		my $v = $m{$what};

		push @table, [ $what, spread(@{ $v->{pg} }),
			ratio($v->{pg}, \@unit), map { spread(@{ $v->{$_} }) }
			qw/ first last ratio nginx / ];
		bench_row("$what of 2 KiB", $v->{pg}, 'us PostgreSQL', undef, undef,
			$goal, 'less');
		bench_row("$what of 2 KiB, grows", $v->{last}, 'us PostgreSQL',
			"the first $part", $v->{ratio}, 1.1, 'less');
		bench_row("$what of 2 KiB: nginx", $v->{nginx}, 'us nginx', undef,
			undef, undef, 'less');
	}

	print "\n";
	bench_table(@table);
	bench_note('unit', 'a row with an index: ' . spread(@unit)
		. ' us PostgreSQL');
}
