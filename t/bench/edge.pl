#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Ten real hf_xet clients, each with its own token, fetch the same 300 MiB file
# through an edge (conf/edge.conf).  Measures how many bytes come from the
# origin, with one client at a time and with all at the same time, in both modes
# of xet_url_mode.
#
#     perl t/bench/edge.pl
#
# Needs "make build tools cli" and hf_xet (t/clients/setup.sh).  Takes two to
# five minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Real;

my $clients = choose(10, 2);
my $size = choose(300, 4) << 20;

need_file(Test::Xet::Real::build() . '/venv/bin/python',
	't/clients/setup.sh');
bench_start("$clients clients, a file of 300 MiB, an edge", pin => 0);
bench_note('client', 'hf_xet ' . hf_xet({}, 'version')->{version});

my $dir = tempdir(CLEANUP => 1, -d '/dev/shm' ? (DIR => '/dev/shm') : ());
my $file = make_mix("$dir/mix", 1, $size);
my $sum = sha256_file($file);

my @rows = [ 'mode, clients', 'pieces: hits', 'misses', 'hit ratio',
	'MiB to clients', 'MiB from the origin', 'of the file' ];

for my $mode (bench_short() || bench_quick() ? 'strict' : qw/ strict cacheable /) {
	for my $at_once (bench_short() || bench_quick() ? $clients : (1, $clients)) {
		push @rows, [ "$mode, " . ($at_once == 1
			? 'one after another' : 'all at once'),
			measure($mode, $at_once) ];
		bench_row("edge, $rows[-1][0]", $rows[-1][5], 'MiB',
			'the stored file', $rows[-1][6], undef, 'less');
	}
}

bench_heading('hits and misses of the edge, bytes of the origin');
bench_table(@rows);
print "\npieces are the slices of 4 MiB that an entry of the cache is\n";

# --------------------------------------------------------------------------

sub measure {
	my ($mode, $at_once) = @_;

	my $origin = bench_server(pin => 0, workers => 1,
		http => 'xet_token_key %%DIR%%/token.key;',
		server => "xet_url_mode $mode;", locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth token;
            xet_access store;
            client_max_body_size 80m;
        }

        location /xorbs/ {
            xet_data;
            root %%STORE%%;
            access_log %%DIR%%/bytes.log;
        }

        location ~ ^/token/(?<who>\w+)$ {
            xet_token;
            xet_token_scope write;
            xet_token_subject $who;
        }
EOC

	$origin->write_file('token.key', 'token:t1:' . '70' x 32 . "\n");
	chmod(0600, $origin->dir() . '/token.key');

	# a slice is a subrequest; the main request shows what the client gets

	my $edge = Test::Xet::Edge::edge($origin, timeout => 900,
		http => 'log_subrequest on; log_format pieces'
			. ' "$upstream_cache_status $slice_range $uri";'
			. ' access_log %%DIR%%/pieces.log pieces;');

	Test::Xet::Edge::base($origin, $edge);
	$origin->run();
	$edge->run();

	my $info = hf_xet({ env => token($origin, 'uploader') }, 'upload',
		'session', $edge->url('/api'), $file)->[0] or die "upload\n";

	fetch_all($origin, $edge, $info->{hash}, $at_once);

	my %pieces;

	for (split(/\n/, $edge->read_file('pieces.log'))) {
		my ($status, undef, $uri) = split(/ /);

		$pieces{$status}++ if $uri =~ m!^/xorbs/!;
	}

	my $from = 0;

	$from += (/" 206 (\d+) /)[0] // 0
		for split(/\n/, $origin->read_file('bytes.log'));

	my $stored = $origin->sql(
		'select sum(stored_size) from xet.xorbs');
	my $hits = $pieces{HIT} // 0;
	my $misses = 0;

	$misses += $pieces{$_} for grep { $_ ne 'HIT' } keys %pieces;

	bench_end($edge);
	bench_end($origin);

	return ($hits, $misses, sprintf('%.3f', $hits / ($hits + $misses)),
		sprintf('%.0f', $clients * $stored / (1 << 20)),
		sprintf('%.1f', $from / (1 << 20)),
		sprintf('%.3f', $from / $stored));
}

sub token {
	my ($origin, $who) = @_;

	my $token = $origin->get("/token/$who")->json();

	return { XET_TOKEN => $token->{accessToken},
		XET_TOKEN_EXPIRY => $token->{exp} };
}

sub fetch_all {
	my ($origin, $edge, $hash, $at_once) = @_;

	my @left = map { "client$_" } 1 .. $clients;

	while (my @now = splice(@left, 0, $at_once)) {
		my %running = map { $_ => hf_xet_start({ env =>
			token($origin, $_) }, 'download', 'session',
			$edge->url('/api'), $hash, $size, "$dir/$_") } @now;

		for my $who (@now) {
			hf_xet_wait($running{$who})
				or die "$who has failed\n";
			die "other bytes came to $who\n"
				if sha256_file("$dir/$who") ne $sum;
			unlink("$dir/$who");
		}
	}
}
