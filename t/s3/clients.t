#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The real clients with a bucket: hf_xet, @huggingface/hub, curl and xet
# download files that hf_xet has uploaded, in each mode of xet_data_mode.
# Depending on the mode, requests go to nginx or directly to the store.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ run_command slurp /;
use Test::Xet::Real;
use Test::Xet::S3;
use Test::Xet::S3Fault;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;

my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);
my $dir = tempdir(CLEANUP => 1);
my $size = 9_000_000;
my $seed = 0;

my $t = Test::Xet->new(s3 => $s3, workers => 2, log => 'info',
	s3_endpoint => $fault->endpoint());

$t->run();

for my $mode (qw/ proxy presigned /) {
	$t->write_conf(undef, directives => { xet_data_mode => $mode });
	$t->reload();

	my $endpoint = $t->url('/api');
	my $file = make_mix("$dir/file", ++$seed, $size);
	my $sha256 = sha256_file($file);
	my $sent = hf_xet({}, 'upload', 'session', $endpoint, $file);
	my $hash = $sent->[0]{hash};

	ok($hash, "$mode: hf_xet sends") or next;

	for my $api (qw/ session legacy /) {
		ways();
		unlink("$dir/out");
		hf_xet({}, 'download', $api, $endpoint, $hash, $size,
			"$dir/out");
		is(-e "$dir/out" && sha256_file("$dir/out"), $sha256,
			"$mode: hf_xet, $api");
		way($mode, "hf_xet, $api");
	}

	my $got = hub_blob($endpoint, $hash, $size, '100000:2500000');

	is($got->{whole}{sha256}, $sha256, "$mode: \@huggingface/hub: whole");
	is($got->{stream}{sha256}, $sha256, "$mode: \@huggingface/hub: stream");
	is($got->{slices}[0]{sha256},
		sha256_hex(file_slice($file, 100000, 2500000)),
		"$mode: \@huggingface/hub: slice");
	way($mode, '@huggingface/hub');

	# nginx assembles the file in every mode

	my $url = $t->url("/api/v1/files/$hash");

	run_command([ qw/ curl -sf -o /, "$dir/out", $url ]);
	is(sha256_file("$dir/out"), $sha256, "$mode: curl");
	run_command([ qw/ curl -sf -r 100000-2499999 -o /, "$dir/out", $url ]);
	ok(slurp("$dir/out") eq file_slice($file, 100000, 2500000),
		"$mode: curl, a range");

	ways();
	is(xet($t, 'get', '-o', "$dir/xet", $hash)->{code}, 0,
		"$mode: xet get");
	is(sha256_file("$dir/xet"), $sha256, "$mode: xet get: the bytes");
	way($mode, 'xet get');
	unlink("$dir/xet");

	# a client that sends a file to nginx

	make_mix("$dir/put", ++$seed, $size);

	my (undef, $out) = run_command([ qw/ curl -sf -T /, "$dir/put",
		$t->url('/api/v1/files') ]);
	my ($put) = $out =~ /"hash":"([0-9a-f]{64})"/;

	hf_xet({}, 'download', 'session', $endpoint, $put, $size, "$dir/out");
	is(sha256_file("$dir/out"), sha256_file("$dir/put"),
		"$mode: what curl sends comes back by hf_xet");
}

$t->done();

# --------------------------------------------------------------------------

# Returns counts since the last call: data URLs that nginx has served, and
# requests to the store that did not come from nginx.

my ($log, $requests);

sub ways {
	my $text = $t->read_file('access.log');
	my $nginx = () = substr($text, $log // 0) =~ m!"GET /xorbs/!g;
	my @seen = grep { $_->{op} eq 'GetObject'
		&& $_->{target} =~ /[?&]X-Amz-Signature=/ } $fault->seen();
	my $store = @seen - ($requests // 0);

	($log, $requests) = (length($text), scalar(@seen));

	return ($nginx, $store);
}

sub way {
	my ($mode, $name) = @_;
	my ($nginx, $store) = ways();
	my ($most, $none) = $mode eq 'proxy' ? ($nginx, $store)
		: ($store, $nginx);

	cmp_ok($most, '>', 0, "$mode: $name: this way");
	is($none, 0, "$mode: $name: no other");
}
