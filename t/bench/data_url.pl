#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures reads of xorb ranges by signed URLs, compared with the same ranges of
# the same file from an unprotected location of the same nginx: processor time
# of the worker per request, and requests and bytes per second.
#
#     perl t/bench/data_url.pl
#
# Needs "make build tools cli".  Takes a minute and a half.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Test::Xet;
use Test::Xet::Process qw/ slurp spew /;

my $repeats = repeats(5);
my $seconds = seconds(2);
my $urls = choose(4096, 64);
my $size = choose(64, 4) << 20;
my $expires = time() + 86400;

need('wrk', 'wrk');
bench_start('ranges by signed URLs, one worker');

my $t = bench_server(
	http => 'open_file_cache max=1000 inactive=10m;'
		. ' open_file_cache_valid 10m;',
	server => join("\n        ", '',
		'location /plain/xorbs/ {',
		'    alias %%STORE%%/xorbs/;',
		'    types { }',
		'    default_type application/octet-stream;',
		'}',
		'location /uncached/xorbs/ {',
		'    xet_data;',
		'    open_file_cache off;',
		'    alias %%STORE%%/xorbs/;',
		'    types { }',
		'    default_type application/octet-stream;',
		'}',
		'location /uncached-plain/xorbs/ {',
		'    open_file_cache off;',
		'    alias %%STORE%%/xorbs/;',
		'    types { }',
		'    default_type application/octet-stream;',
		'}')
);

$t->run();

my ($worker) = $t->worker_pids();

check_signer();

# only the number of bytes matters, so the hash in the name is made up

my $hash = '5a' x 32;
my $path = "/xorbs/default/5a/$hash";
my $noise = random_bytes(1, 1 << 20);

mkdir($t->store() . '/xorbs/default/5a');
spew($t->store() . $path, join('', ($noise) x ($size >> 20)));
chmod(0644, $t->store() . $path);

my @ratios = [ 'signed against plain', 'CPU a request', 'requests/s' ];
my @rows = [ 'CPU us a request', 'signed', 'plain', 'more' ];
my @rates = [ 'a second', 'signed', 'plain', 'signed MB/s' ];

for (
	[ '4 KiB, 32 clients', 4096, 32, '', '/plain' ],
	[ '64 KiB, 32 clients', 65536, 32, '', '/plain' ],
	[ '64 KiB, no open_file_cache', 65536, 32, '/uncached',
		'/uncached-plain' ],
	[ '1 MiB, 8 clients', 1 << 20, 8, '', '/plain' ],
) {
	my ($name, $length, $c, @prefixes) = @$_;
	my @scripts = map { script($_, $length) } @prefixes;
	my (@cpu, @rps, @more, @by_cpu, @by_rps, @rate);

	for (bench_short() .. $repeats) {
		my @got = map {
			wrk(url => $t->url('/'), script => $_, c => $c,
				s => $seconds, pids => [ $worker ])
		} @scripts;

		next if $_ == 0;

		push @{ $cpu[$_] }, $got[$_]{cpu}[0] for 0, 1;
		push @{ $rps[$_] }, $got[$_]{rps} for 0, 1;
		push @more, $got[0]{cpu}[0] - $got[1]{cpu}[0];
		push @by_cpu, $got[0]{cpu}[0] / $got[1]{cpu}[0];
		push @by_rps, $got[0]{rps} / $got[1]{rps};
		push @rate, $got[0]{rps} * $length / 1e6;
	}

	push @ratios, [ $name, map { spread(@$_) } \@by_cpu, \@by_rps ];
	push @rows, [ $name, map { spread(@$_) } @cpu, \@more ];
	push @rates, [ $name, map { spread(@$_) } @rps, \@rate ];
	bench_row("signed range, $name", $cpu[0], 'us CPU', 'plain', \@by_cpu,
		$prefixes[0] eq '' ? 1.08 : undef, 'less');
}

bench_heading("$urls signed ranges of a xorb of 64 MiB in memory,"
	. " $repeats runs of $seconds s");
bench_table(@ratios);
print "\n";
bench_table(@rows);
print "\n";
bench_table(@rates);

bench_end($t);

# --------------------------------------------------------------------------

# Signs a URL of a copy as described in src/core/access/xet_access.h, with the
# key of the test harness.  The name of a copy is the xorb's hash and a tag.

sub signed {
	my ($name, $first, $last, $expires) = @_;

	my $text = 'default/' . substr($name, 0, 2)
		. "/$name?r=$first-$last&e=$expires&k=k1";

	return "/xorbs/$text&s=" . url_mac($text, derived_key("\x5e" x 32));
}

# Checks that signed() returns the same URL as the server.

sub check_signer {
	my $file = $t->upload(random_bytes(2, 100000));
	my $plan = $t->get("/api/v2/reconstructions/$file->{hash}")->json();
	my ($xorb) = keys %{ $plan->{xorbs} };
	my $entry = $plan->{xorbs}{$xorb}[0];
	my $range = $entry->{ranges}[0]{bytes};
	my ($name, $expires) = $entry->{url} =~ m!/($xorb[^/?]*)\?.*&e=(\d+)!;

	my $ours = $t->url(signed($name, $range->{start}, $range->{end},
		$expires));

	die "signed otherwise:\n$ours\n$entry->{url}\n"
		if $ours ne $entry->{url};
}

# Writes a wrk script of many requests, each with a different signature.  The
# plain location gets requests of the same length, so parsing costs the same.

sub script {
	my ($prefix, $length) = @_;

	my $dir = $t->dir();
	my $name = "$dir/urls" . ($prefix =~ tr!/!-!r) . $length;
	my @lines;

	srand(7);

	for (1 .. $urls) {
		my $first = int(rand($size - $length));
		my $last = $first + $length - 1;

		push @lines, $prefix . signed($hash, $first, $last, $expires)
			. " $first-$last";
	}

	spew($name, join("\n", @lines) . "\n");

	my ($url, $range) = split(' ', $lines[0]);
	my $r = $t->get($url, { Range => "bytes=$range" });
	my ($first) = $range =~ /^(\d+)/;

	die "$url: $r->{status}\n" if $r->{status} != 206
		|| length($r->{body}) != $length
		|| $r->{body} ne substr($noise x 3, $first % (1 << 20),
			$length);

	return wrk_script($name, <<'EOL');
      local url, range = line:match("(%S+) (%S+)")
      local request = wrk.format("GET", url, { Range = "bytes=" .. range })
EOL
}
