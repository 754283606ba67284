#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The module built without zTensor support: it needs fewer libraries, has no
# zTensor routes and directives, and stores and serves files.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ root run_command /;

use File::Temp qw/ tempdir /;

my $dir = tempdir(CLEANUP => 1);
my $module = "$dir/build/nginx/ngx_http_xet_module.so";

chmod(0755, $dir);

my ($status, $out) = run_command([ 'make', '-C', root(), 'build',
	"BUILD=$dir/build", 'XET_ZTENSOR=NO' ], timeout => 900);

is($status, 0, 'built') or diag($out);

($status, $out) = run_command([ 'readelf', '--wide', '--dynamic',
	$module ]);

like($out, qr/\(NEEDED\).*\[liblz4\./, 'libraries are told');
unlike($out, qr/\[lib(?:zstd|isal)\./, 'neither zstd nor ISA-L');

$ENV{XET_TEST_MODULE} = $module;

my $t = Test::Xet->new(workers => 1);

$t->run();

my $data = mix(1, 300000);
my $file = $t->upload($data);

is($t->get("/api/v1/files/$file->{hash}")->{body}, $data, 'a file by xorbs');

my $r = $t->http('PUT', '/api/v1/files', {}, \$data);

is($r->{status}, 200, 'the same by PUT');
is($r->json()->{hash}, $file->{hash}, 'its hash');

for my $what ('', '/object', '/data', '/reconstruction', '/verify') {
	is($t->get("/api/v1/zt/$file->{hash}$what?name=x")->{status}, 404,
		"no route zt$what");
}

my $good;

for my $directive (qw/ xet_ztensor_strict xet_ztensor_limits /) {
	($good, $out) = $t->config_test(undef,
		directives => { $directive => 'on' });

	ok(!$good, "no $directive");
	like($out, qr/unknown directive "$directive"/, 'and nginx says so');
}

$t->done();
