#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Reads one tensor of 4 KiB by name from a 5 GiB zTensor file with 100,000
# tensors.  Either the server looks up the name, or the client itself reads
# footer, manifest and tensor, over plain HTTP or as a Xet client.  The client's
# time for parsing 14 MB of manifest is not counted.
#
#     perl t/bench/ztensor.pl
#
# Needs "make build tools cli".  Takes a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Ztensor;

my $repeats = repeats(5);
my $each = choose(10, 2);

bench_start('one tensor of 4 KiB out of 100,000');

my $t = bench_server();

$t->run();

my ($worker) = $t->worker_pids();
my $file = zt_large($t, bench_short()
	? (tensors => 1000, size => 128 << 20) : ());
my $files = "/api/v1/files/$file->{hash}";
my $tail = $file->{size} - 16;
my $manifest = $tail - $file->{manifest};

my ($requests, $bytes);

# uses a new connection for each request

sub get {
	my ($uri, $range) = @_;

	my $r = $t->get($uri, $range ? { Range => 'bytes='
		. join('-', @$range) } : {}, timeout => 60);

	die "$uri: $r->{status} $r->{body}\n" if $r->{status} !~ /^20[06]$/;

	$requests++;
	$bytes += length($r->{body});

	return $r;
}

# fetches the xorb bytes of a range, by reconstruction and signed URLs

sub xet {
	my ($first, $last) = @_;

	my $plan = get("/api/v1/reconstructions/$file->{hash}",
		[ $first, $last ])->json();

	for my $entry (map { @$_ } values %{ $plan->{fetch_info} }) {
		get($entry->{url} =~ s!^https?://[^/]+!!r,
			[ @{ $entry->{url_range} }{qw/ start end /} ]);
	}
}

sub tensor { return int(rand(@{ $file->{names} })) }

my %ways = (
	'by name' => sub {
		my $i = tensor();
		my $r = get("/api/v1/zt/$file->{hash}/data"
			. "?name=$file->{names}[$i]");

		die "wrong bytes\n" if $r->{body} ne $file->{data}->($i);
	},

	'by name, first time' => sub {
		get("/api/v1/zt/$file->{hash}/data?name="
			. $file->{names}[tensor()]);
	},

	'ranges of the file' => sub {
		my $offset = $file->{offsets}[tensor()];

		get($files, [ $tail, $tail + 15 ]);
		get($files, [ $manifest, $tail - 1 ]);
		get($files, [ $offset, $offset + 4095 ]);
	},

	'ranges by Xet' => sub {
		my $offset = $file->{offsets}[tensor()];

		xet($tail, $tail + 15);
		xet($manifest, $tail - 1);
		xet($offset, $offset + 4095);
	}
);

my @rows = [ '', 'requests', 'bytes', 'ms', 'CPU ms of the worker' ];
my %median;

for my $way ('by name', 'by name, first time', 'ranges of the file',
	'ranges by Xet')
{
	my (@ms, @cpu, @n);

	for (bench_short() .. $repeats) {
		my $n = $way eq 'by name' ? $each * 10 : $each;
		my ($time, $cpu) = (0, 0);

		($requests, $bytes) = (0, 0);

		for (1 .. $n) {
			$t->sql('delete from xet.zt_files') if $way =~ /first/;

			my ($start, $used) = (time(), cpu_us($worker));

			$ways{$way}->();
			$time += time() - $start;
			$cpu += cpu_us($worker) - $used;
		}

		next if $_ == 0;

		push @ms, $time * 1000 / $n;
		push @cpu, $cpu / 1000 / $n;
		@n = map { $_ / $n } $requests, $bytes;
	}

	push @rows, [ $way, map({ sprintf('%.0f', $_) } @n),
		spread(@ms), spread(@cpu) ];
	$median{$way} = median(@ms);
	bench_row("tensor of a .zt, $way", \@ms, 'ms', undef, undef,
		$way =~ /first/ ? 300 : undef, 'less');
}

bench_heading("$repeats runs of $each, a connection a request");
bench_table(@rows);

print "\n";
bench_note('by name, against ranges of the file',
	sprintf('1/%.0f of the time',
		$median{'ranges of the file'} / $median{'by name'}));

bench_end($t);
