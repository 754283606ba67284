#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# GET of files by programs without Xet support: curl and wget resume downloads,
# aria2c downloads in parallel, pandas reads a column, and a browser seeks in an
# audio file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ reap root run_command slurp spawn spew /;

use File::Temp qw/ tempdir /;
use JSON::PP ();

my $t = Test::Xet->new(
	workers => 2, timeout => 600,
	http => <<'EOC',
log_format files '$request_method $status "$http_range" $body_bytes_sent';
    types {
        text/html  html;
        audio/wav  wav;
    }

    server {
        listen      127.0.0.1:%%PORT_8082%% http2;
        access_log  %%DIR%%/files.log files;

        location /api/ {
            xet_api;
            xet_auth  off;
        }
    }
EOC
	server => <<'EOC');
access_log %%DIR%%/files.log files;

        location = /media.html {
            root %%ROOT%%/t/clients;
        }

        location = /report {
            access_log %%DIR%%/report.log combined;
            return 204;
        }
EOC

$t->run();

my $dir = tempdir(CLEANUP => 1);
my $build = $ENV{XET_BUILD} || root() . '/build';

sub url { return $t->url("/api/v1/files/$_[0]->{hash}" . ($_[1] // '')) }

sub have {
	my ($program) = @_;

	return grep { -x "$_/$program" } split(/:/, $ENV{PATH});
}

# Returns the lines that the server has logged since the last call.

my $seen = 0;

sub requests {
	my $log = slurp($t->dir() . '/files.log');
	my @lines = split(/\n/, substr($log, $seen));

	$seen = length($log);

	return @lines;
}

# --------------------------------------------------------------------------
# 40 MB; the client already has a part of it

my $xorb = send_xorb($t, mix(1, 4_000_000));
my $file = register_file($t, [ map { [ $xorb ] } 1 .. 10 ]);

for (
	[ 'curl', qw/ curl -sS --fail -C - -o / ],
	[ 'wget', qw/ wget -q -c -O / ],
	[ 'aria2c', qw/ aria2c -q -c -x4 -s4 -k1M --file-allocation=none
		--allow-overwrite=false / ]
) {
	my ($name, @command) = @$_;

	SKIP: {
		skip "no $name", 2 unless have($name);

		for my $part (0, 15_000_001) {
			my $out = "$dir/$name-$part";

			spew($out, substr($file->{data}, 0, $part)) if $part;
			requests();

			my ($status, $text) = run_command([ @command,
				$name eq 'aria2c' ? ("--dir=$dir",
					"--out=$name-$part") : $out,
				url($file) ]);

			ok($status == 0 && slurp($out) eq $file->{data},
				"$name: resumed after $part bytes")
				or diag($text);

			my @ranges = grep { / 206 / } requests();

			ok($name eq 'aria2c' ? @ranges > 1 : $part ? @ranges
				== 1 : !@ranges, "$name: range requests")
				or diag("@ranges");

			unlink($out);
		}
	}
}

# the file is complete: the server responds with 416, and wget succeeds

SKIP: {
	skip 'no wget', 2 unless have('wget');

	spew("$dir/all", $file->{data});

	my ($status) = run_command([ qw/ wget -q -c -O /, "$dir/all",
		url($file) ]);

	is($status, 0, 'wget: the file is complete already');
	is(-s "$dir/all", $file->{size}, 'and is unchanged');
}

# HTTP/2, four concurrent downloads, each on its own connection, because curl
# 7.88 fails to share one

my $two = "http://127.0.0.1:" . $t->port(8082) . '/api/v1/files/';
my ($status, $text) = run_command([ qw/ curl -sS --fail
	--http2-prior-knowledge --parallel --parallel-immediate /,
	map { ('-o', "$dir/h2-$_", "$two$file->{hash}?n=$_") } 1 .. 4 ]);

is($status, 0, 'HTTP/2') or diag($text);
ok(slurp("$dir/h2-$_") eq $file->{data}, "HTTP/2: $_ of 4") for 1 .. 4;

# --------------------------------------------------------------------------
# pandas

SKIP: {
	my @pandas = ("$build/clients/datasets/bin/python",
		root() . '/t/clients/pandas_read.py');

	skip 'no pandas', 8 unless -x $pandas[0];

	($status, $text) = run_command([ @pandas, 'make', "$dir/x.parquet" ]);
	is($status, 0, 'a parquet file was written') or diag($text);

	my $bytes = slurp("$dir/x.parquet");
	my $frame = $t->upload($bytes, xorb_chunks => 20);

	requests();

	($status, $text) = run_command([ @pandas, 'read', url($frame) ]);
	is($status, 0, 'pandas.read_parquet') or diag($text);

	my $got = eval { JSON::PP->new()->decode($text) } || {};

	is($got->{rows}, 400000, 'rows');
	is($got->{sum}, 400000 * 399999 / 2, 'all columns');
	is($got->{last}, 'row 999', 'text');
	is($got->{some}, 400000 * 399999 / 2, 'one column');

	my ($ranges, $sent) = (0, 0);

	for (requests()) {
		next unless / 206 "bytes=.*" (\d+)/;

		$ranges++;
		$sent += $1;
	}

	cmp_ok($ranges, '>', 1, 'with range requests');
	cmp_ok($sent, '<', length($bytes),
		'and only a part of the file is sent')
		or diag("$sent of " . length($bytes));
}

# --------------------------------------------------------------------------
# a browser plays 100 MB of audio (567 seconds) from a position near its end

SKIP: {
	skip 'no chromium', 3 unless have('chromium');

	my $noise = send_xorb($t, random_bytes(3, 1_000_000));
	my $size = 100 * 1_000_000;

	my $head = send_xorb($t, pack('a4 V a4 a4 V v v V V v v a4 V',
		'RIFF', $size + 36, 'WAVE', 'fmt ', 16, 1, 2, 44100, 176400,
		4, 16, 'data', $size), sizes => [ 44 ]);

	my $sound = register_file($t, [ [ $head ],
		map { [ $noise ] } 1 .. 100 ], data => 0);

	requests();

	my $profile = tempdir(CLEANUP => 1);
	my $uri = "/api/v1/files/$sound->{hash}?filename=noise.wav";

	$uri =~ s/([^\w.])/sprintf('%%%02X', ord($1))/ge;

	my $pid = spawn([ 'chromium', '--headless=new', '--no-sandbox',
		'--disable-gpu', '--no-first-run', '--disable-extensions',
		'--disable-background-networking', '--disable-dev-shm-usage',
		'--disable-component-update', '--mute-audio',
		"--user-data-dir=$profile",
		$t->url("/media.html#$uri") ],
		output => $t->dir() . '/chromium.log');

	my $report = $t->dir() . '/report.log';
	my $told = wait_for(120, sub { -s $report && slurp($report) }) || '';

	kill('TERM', $pid);
	reap($pid, 10);

	like($told, qr!/report\?seeked%20562%20of%20567!, 'a browser seeks');

	my @got = wait_for(10, sub { -s $t->dir() . '/files.log' > $seen })
		? requests() : ();
	my @ranges = grep { /^GET 206 "bytes=\d{3,}-/ } @got;
	my $sent = 0;

	$sent += (split(/ /))[-1] for @got;

	ok(@ranges > 0, 'with range requests') or diag(join("\n", @got));
	cmp_ok($sent, '<', $size / 2, 'and only a part of the file is sent');
}

$t->done();
