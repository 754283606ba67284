#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A store with one host name for clients and another one for nginx.  URLs for
# clients have the public name and are signed for it; nginx never uses this
# name.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Real;
use Test::Xet::S3;
use Test::Xet::S3Fault;

use File::Temp qw/ tempdir /;

my $size = 6_000_000;
my $s3 = Test::Xet::S3->new();
my $inside = Test::Xet::S3Fault->new($s3);
my $outside = Test::Xet::S3Fault->new($s3);
my $public = 'http://localhost:' . $outside->port();

my $t = Test::Xet->new(s3 => $s3, workers => 2, log => 'info',
	s3_endpoint => $inside->endpoint() . " public_endpoint=$public",
	s3_server => '127.0.0.1:' . $inside->port(),
	directives => { xet_grants => 'on' }, server => <<'EOC');

location ~ ^/direct/ {
    xet_api;
    xet_api_base /direct;
    xet_data_mode presigned;
    client_max_body_size 80m;
}

EOC

$t->run();

# --------------------------------------------------------------------------
# the newest hf_xet, unmodified

my $dir = tempdir(CLEANUP => 1);

$t->write_file('in', mix(1, $size));

my $infos = hf_xet({}, 'upload', 'session', $t->url('/api'),
	$t->dir() . '/in');
my $hash = $infos->[0]{hash};

hf_xet({}, 'download', 'session', $t->url('/direct'), $hash, $size,
	"$dir/out");
ok(slurp("$dir/out") eq mix(1, $size), 'hf_xet: up and down');

my @by_url = grep { $_->{target} =~ /X-Amz-Signature=/ } $outside->seen();

cmp_ok(scalar(grep { $_->{op} eq 'PutObject' } @by_url), '>', 0,
	'hf_xet: puts at the public endpoint');
cmp_ok(scalar(grep { $_->{op} eq 'GetObject' } @by_url), '>', 0,
	'hf_xet: gets there');
is(scalar(@by_url), scalar($outside->seen()), 'nginx never goes there');
is(scalar(grep { $_->{target} =~ /X-Amz-Signature=/ } $inside->seen()), 0,
	'clients never come to the other one');
cmp_ok(scalar($inside->seen()), '>', 0, 'nginx does');

# --------------------------------------------------------------------------
# the signature is for the host of the URL

my ($entry) = map { @$_ } values %{ $t->get("/direct/v1/reconstructions/$hash")
	->json()->{fetch_info} };
my $range = 'bytes=' . join('-', @{ $entry->{url_range} }{qw/ start end /});

like($entry->{url}, qr!^\Q$public\E/xet/a/prefix/xorbs/!, 'presigned: whose');

my ($target) = $entry->{url} =~ m!^http://[^/]+(/.*)!;

for ([ $outside, "localhost:@{[ $outside->port() ]}", 206 ],
	[ $outside, $outside->host(), 403 ], [ $inside, $inside->host(), 403 ])
{
	my ($to, $host, $status) = @$_;

	is(Test::Xet::HTTP->request($to->port(), 'GET', $target,
		{ Host => $host, Range => $range })->{status}, $status,
		"presigned: $host");
}

my $xorb = make_xorb(mix(2, 300000));
my $grant = $t->post("/api/v1/xorb-grants/default/$xorb->{hash}",
	\'{"length":100,"checksum":{"algo":"crc64nvme","value":"1"}}')->json();

like($grant->{url}, qr!^\Q$public\E/xet/a/prefix/staging/!, 'grant: whose');

# URLs through nginx contain no name of the store

($entry) = map { @$_ } values %{ $t->get("/api/v1/reconstructions/$hash")
	->json()->{fetch_info} };

like($entry->{url}, qr!^http://127\.0\.0\.1:@{[ $t->port() ]}/xorbs/!,
	'by way of nginx');
is($t->get($entry->{url} =~ s!^http://[^/]+!!r, { Range => $range })->{status},
	206, 'by way of nginx: as signed');

$t->done();
