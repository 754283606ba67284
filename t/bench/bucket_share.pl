#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real hf_xet downloads files whose data is in a bucket, with
# "xet_data_mode presigned".  Compares the bytes that nginx sends, including
# headers and reconstructions, with the bytes that the object store sends.
#
#     perl t/bench/bucket_share.pl
#
# Needs "make build tools cli" and hf_xet (t/clients/setup.sh).  Takes a minute.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;
use Sink;

use File::Temp qw/ tempdir /;

use Test::Xet;
use Test::Xet::Real;
use Test::Xet::S3Fault;

need_file(Test::Xet::Real::build() . '/venv/bin/python',
	't/clients/setup.sh');
bench_start('what passes nginx of reads by presigned URLs', pin => 0);
bench_note('client', 'hf_xet ' . hf_xet({}, 'version')->{version});

my $dir = tempdir('xbench-XXXXXX', CLEANUP => 1,
	-d '/dev/shm' ? (DIR => '/dev/shm') : (TMPDIR => 1));

chmod(0755, $dir);

# the proxy in front of the store counts bytes

my $s3 = Sink->new(dir => "$dir/s3", keep => 80 << 20);
my $fault = Test::Xet::S3Fault->new($s3);
my $t = bench_server(pin => 0, workers => 2, s3 => $s3,
	s3_endpoint => $fault->endpoint(),
	s3_params => 'timeout=60s part=64m', http => 'log_format sent'
		. ' "$bytes_sent $uri";',
	locations => <<'EOC');
xet_auth off;

location /api/ {
            xet_api;
            xet_data_mode presigned;
            access_log %%DIR%%/sent.log sent;
            client_max_body_size 80m;
        }
EOC

$t->run();

my @rows = [ 'a file of', 'requests to nginx', 'bytes', 'to the store',
	'bytes', 'by nginx' ];

for my $mib (bench_short() ? 1 : (1, 16, 300)) {
	my $file = make_mix("$dir/mix", $mib, $mib << 20);
	my $sum = sha256_file($file);
	my $info = hf_xet({}, 'upload', 'session', $t->url('/api'), $file)
		or die "upload\n";

	my $before = -s $t->dir() . '/sent.log';

	$fault->zero();

	hf_xet({}, 'download', 'session', $t->url('/api'), $info->[0]{hash},
		$mib << 20, "$dir/out") or die "download\n";

	die "other bytes came back\n" if sha256_file("$dir/out") ne $sum;
	unlink("$dir/out");

	my @sent = map { (split(/ /))[0] } split(/\n/,
		substr($t->read_file('sent.log'), $before));
	my @seen = grep { $_->{method} eq 'GET' } $fault->seen();
	my ($nginx, $store) = (0, 0);

	die "nothing was logged\n" unless @sent;

	$nginx += $_ for @sent;
	$store += $_->{got} for @seen;

	push @rows, [ "$mib MiB", scalar(@sent), $nginx, scalar(@seen),
		$store, sprintf('%.3f %%', 100 * $nginx
			/ ($nginx + $store)) ];
	bench_row("presigned: bytes through nginx, $mib MiB", $nginx, 'bytes',
		'all bytes', $nginx / ($nginx + $store), undef, 'less');
}

bench_heading('one download each');
bench_table(@rows);

bench_end($t);
$s3->stop();
