#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures "GET v2/reconstructions" of a file of 20 terms, one request after the
# other on one connection, with the primary and with a standby on the same
# machine.  For a file that only the primary has, and for a missing file, the
# server queries first the standby, then the primary.
#
#     perl t/bench/standby.pl
#
# Needs "make build tools cli".  Takes a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use IO::Socket::INET;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ slurp /;

my $repeats = repeats(5);
my $requests = choose(2000, 50);

bench_start('reconstructions from a standby, one worker');

my $dir = tempdir(CLEANUP => 1);
my $t = bench_server(locations => <<'EOC');
xet_auth off;

location /api/ { xet_api; client_max_body_size 80m; }
location /xorbs/ { xet_data; root %%STORE%%; }
location = /metrics { xet_metrics; }
EOC

$t->run();

my ($body, $hashes) = bench_files($t, choose(2000, 100), $dir);
my @names = split(/\n/, slurp($hashes));
my $standby = $t->pg()->standby($t->dir() . '/sb');

$standby->start();
$t->pg()->followed($standby);

my %read = (xet_postgres_read => '"host=' . $standby->socket_dir()
	. ' user=xet dbname=xet" lag=1h');

my ($seed, %m) = (1);

for my $n (bench_short() .. $repeats) {
	for my $from ('primary', 'standby') {
		$t->write_conf(undef, directives => $from eq 'standby'
			? \%read : {});
		$t->reload();
		wait_for(20, sub { (metrics($t)
			->{'xet_standby_readable{standby="1"}'} // 0) == 1 })
			or die $t->log() if $from eq 'standby';

		# files that the standby does not have

		$standby->sql('SELECT pg_wal_replay_pause()');

		my $late = $t->upload(random_bytes(++$seed, 20 * 16384),
			sizes => [ (16384) x 20 ], xorb_chunks => 1)->{hash};

		my %us = (known => ask($from, sub { $names[rand(@names)] }),
			late => ask($from, sub { $late }),
			missing => ask($from, sub { '1' x 64 }, 404));

		$standby->sql('SELECT pg_wal_replay_resume()');
		$t->pg()->followed($standby);

		next if $n == 0;

		for my $what (keys %us) {
			my @us = sort { $a <=> $b } @{ $us{$what} };

			push @{ $m{"$from $what p50"} }, $us[@us / 2];
			push @{ $m{"$from $what p99"} }, $us[@us * 0.99];
		}
	}
}

bench_heading("answers of " . length($body) . " bytes, $repeats runs of"
	. " $requests requests");
bench_table([ 'us, 1 in flight', 'primary', 'standby', 'standby : primary' ],
	map { my $row = $_; [ $row, map({ spread(@{ $m{"$_ $row"} }) }
		'primary', 'standby'), spread(map { $m{"standby $row"}[$_]
		/ $m{"primary $row"}[$_] } 0 .. $repeats - 1) ] }
	map { ("$_ p50", "$_ p99") } qw/ known late missing /);

for my $what (qw/ known late missing /) {
	my ($one, $two) = @m{"primary $what p50", "standby $what p50"};

	bench_row("reconstruction from a standby, $what", $two, 'us, p50',
		'the primary', median(@$two) / median(@$one), undef, 'less');
}

$standby->stop();
bench_end($t);

# --------------------------------------------------------------------------

# Returns the latency of each request, in microseconds.

sub ask {
	my ($from, $name, $status) = @_;

	$status ||= 200;

	my $c = IO::Socket::INET->new(PeerPort => $t->port(),
		PeerAddr => '127.0.0.1') or die "$!\n";
	my @us;

	for (1 .. $requests) {
		my $request = 'GET /api/v2/reconstructions/' . $name->()
			. " HTTP/1.1\r\nHost: localhost\r\n\r\n";
		my $begin = time();
		my ($in, $want) = ('');

		syswrite($c, $request);

		until (defined $want && length($in) >= $want) {
			sysread($c, $in, 65536, length($in)) or die "closed\n";

			next if defined $want || $in !~ /\r\n\r\n/;
			$want = $+[0];

			if ($in =~ /^Content-Length: (\d+)/mi) {
				$want += $1;
				next;
			}

			# until the last chunk

			sysread($c, $in, 65536, length($in)) or die "closed\n"
				while $in !~ /\r\n0\r\n\r\n\z/;
		}

		push @us, (time() - $begin) * 1e6;
		$in =~ /^HTTP\S+ $status / or die substr($in, 0, 200);
	}

	return \@us;
}
