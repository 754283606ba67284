#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Data in a bucket: requests through nginx, which checks signatures and caches
# slices; requests with presigned URLs; and requests that nginx or the store
# refuses.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Client;
use Test::Xet::Process qw/ slurp /;
use Test::Xet::Real;
use Test::Xet::S3;
use Test::Xet::S3Fault;

use File::Temp qw/ tempdir /;
use JSON::PP ();

my $size = 12_000_000;
my $s3 = Test::Xet::S3->new();
my $fault = Test::Xet::S3Fault->new($s3);

my $t = Test::Xet->new(s3 => $s3, workers => 2, log => 'info',
	s3_endpoint => $fault->endpoint(),
	s3_server => '127.0.0.1:' . $fault->port(),
	server => <<'EOC');

location ~ ^/direct/ {
    xet_api;
    xet_api_base /direct;
    xet_data_mode presigned;
    client_max_body_size 80m;
}

location /several/ {
    xet_api;
    xet_api_base /several;
    xet_url_ranges 8;
}

EOC

$t->run();

my $file = $t->upload(mix(1, $size));
my ($xorb) = grep { m!/xorbs/! } keys %{ $s3->objects() };

# --------------------------------------------------------------------------
# through nginx

my $d = $t->download($file->{hash}, size => $size);

is_deeply($d->{errors}, [], 'proxy: what clients rely on');
ok($d->{data} eq mix(1, $size), 'proxy: the same bytes');

my $before = gets();

$d = $t->download($file->{hash}, size => $size);

ok($d->{data} eq mix(1, $size), 'proxy: again');
is(gets(), $before, 'proxy: from the cache');

my $entry = entry('/api');
my ($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;

is($t->get($path)->{status}, 403, 'proxy: without a range');
is($t->get($path, { Range => 'bytes=0-' . ($size * 2) })->{status}, 403,
	'proxy: another range');
(my $forged = $path) =~ s/&s=(.)/'&s=' . ($1 eq 'A' ? 'B' : 'A')/e;
is($t->get($forged, { Range => "bytes=$entry->{range}" })->{status}, 403,
	'proxy: another signature');
is($t->get($path, { Range => "bytes=$entry->{range}" })->{status}, 206,
	'proxy: as signed');
is($t->head($path, { Range => "bytes=$entry->{range}" })->{status}, 206,
	'proxy: HEAD');

my $r = $t->get($path, { Range => "bytes=$entry->{range}",
	Authorization => 'Bearer stolen', 'x-amz-date' => 'never',
	'x-amz-security-token' => 'x' });

is($r->{status}, 206, 'proxy: headers of the client are not passed on');

nothing_of_it('the cache', $r);

is($r->header_value('Content-Type'), 'application/octet-stream',
	'proxy: the type of a folder');

# The ETag is the same as for a store in a folder.  The store may have been
# moved from a folder, and edges would treat a slice with another ETag as a part
# of another file.

my ($tag) = $xorb =~ m!([^/]+)\z!;

is($r->header_value('ETag'), "\"$tag\"", 'proxy: the ETag of a folder');

for my $case ([ 'If-None-Match', $tag, 304 ], [ 'If-None-Match', 'x', 206 ],
	[ 'If-Match', $tag, 206 ], [ 'If-Match', 'x', 412 ])
{
	my ($name, $value, $status) = @$case;

	$r = $t->get($path, { Range => "bytes=$entry->{range}",
		$name => "\"$value\"" });

	is($r->{status}, $status, "proxy: $name: $value");
}

is($r->json()->{error}{code}, 'precondition_failed', 'proxy: 412: JSON');

# The store adds its own headers to responses.  None of these headers may reach
# the client: neither directly, nor from the cache, nor with an error status.

{
	my $told = $t->upload(mix(3, 2_000_000));
	my $entry = entry('/api', $told);
	my ($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
	my %range = (Range => "bytes=$entry->{range}");
	my $rule = $fault->add(op => 'GetObject', do => 'say',
		headers => [ map { "$_: of-the-store" } said() ]);

	for my $case ([ 'fetched', 206 ], [ 'from the cache', 206 ],
		[ 'unchanged', 304, 'If-None-Match' => '*' ],
		[ 'changed', 412, 'If-Match' => '"x"' ])
	{
		my ($name, $status, @more) = @$case;
		my $r = $t->get($path, { %range, @more });

		is($r->{status}, $status, "$name: status");
		nothing_of_it($name, $r);
	}

	# The store sends these headers once, because later responses come
	# from the cache; after a lost connection nginx repeats the request.

	my $said = $fault->used($rule);

	ok($said > 0 && $said < 4, 'the store has sent the headers')
		or diag($said);
	nothing_of_it('HEAD', $t->head($path, \%range));
	$fault->clear();
}

# nginx cannot serve several ranges from slices, so each range has its own URL

{
	my $data = random_bytes(20, 600000);
	my $xorb = make_xorb($data, scheme => 'none', sizes => [ 20000 ]);
	my $shard = make_shard({ xorbs => [ $xorb ], files => [ {
		verification => JSON::PP::true,
		terms => [ map { { xorb => $xorb->{hash}, start => $_,
			end => $_ + 1 } } 8, 4, 0 ] } ] });
	my $hash = $shard->{files}[0]{hash};

	is($t->post(@$_)->{status}, 200, 'several ranges: a file of them')
		for [ "/api/v1/xorbs/default/$xorb->{hash}", \$xorb->{bytes} ],
			[ '/api/v1/shards', \$shard->{bytes} ];

	my @entries = @{ $t->get("/several/v2/reconstructions/$hash")->json()
		->{xorbs}{$xorb->{hash}} };

	is_deeply([ map { scalar @{ $_->{ranges} } } @entries ], [ 1, 1, 1 ],
		'several ranges: a URL each');
	ok($t->download($hash, base => '/several')->{data}
		eq join('', map { substr($data, $_ * 20000, 20000) } 8, 4, 0),
		'several ranges: the bytes');
}

# the store has the same bytes with another ETag, as after a move to another
# bucket: cached slices and new slices form one response

{
	my $moved = $t->upload(mix(4, $size));
	my $entry = entry('/api', $moved);
	my ($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
	my %range = (Range => "bytes=$entry->{range}");
	my ($name) = $path =~ m!^(/xorbs/[^?]+)!;
	my ($object) = grep { /\Q$name\E\z/ } keys %{ $s3->objects() };

	$fault->add(op => 'GetObject', skip => 2, do => 'status',
		status => 503);
	eval { $t->get($path, \%range) };
	$fault->clear();
	$t->allow(qr/upstream|unexpected status code|slice/);

	my $bytes = $s3->request('GET', $object)->{body};
	my $old = $s3->head($object)->{headers}{etag};

	$s3->must('PUT', $object, body => $bytes);
	isnt($s3->head($object)->{headers}{etag}, $old, 'moved: another ETag');

	my $r = $t->get($path, \%range);

	is($r->{status}, 206, 'moved: status');
	is($r->header_value('ETag'), '"' . ($name =~ m!([^/]+)\z!)[0] . '"',
		'moved: the ETag is the name');

	my ($first, $last) = split(/-/, $entry->{range});

	ok($r->{body} eq substr($bytes, $first, $last - $first + 1),
		'moved: whole');
}

# --------------------------------------------------------------------------
# presigned URLs

$entry = entry('/direct');

like($entry->{url}, qr!^\Q@{[ $fault->endpoint() ]}\E/xet/a/prefix/xorbs/!,
	'presigned: leads to the store');

$d = $t->download($file->{hash}, size => $size, base => '/direct');

is_deeply($d->{errors}, [], 'presigned: what clients rely on');
ok($d->{data} eq mix(1, $size), 'presigned: the same bytes');

my ($target) = $entry->{url} =~ m!^http://[^/]+(/.*)!;

is(direct($target, "bytes=$entry->{range}")->{status}, 206,
	'presigned: as signed');
like(direct($target)->{status}, qr/^40[03]$/, 'presigned: without a range');
is(direct($target, 'bytes=0-1')->{status}, 403, 'presigned: another range');
(my $other = $target) =~ s!/xorbs/default/!/xorbs/defaulx/!;
is(direct($other, "bytes=$entry->{range}")->{status}, 403,
	'presigned: another object');
($other = $target) =~ s/X-Amz-Expires=\d+/X-Amz-Expires=600000/;
is(direct($other, "bytes=$entry->{range}")->{status}, 403,
	'presigned: another time');

is(entry('/direct')->{url}, $entry->{url},
	'presigned: the same within a quantum');

# the newest version of hf_xet

my $dir = tempdir(CLEANUP => 1);

for my $api (qw/ session legacy /) {
	hf_xet({}, 'download', $api, $t->url('/direct'), $file->{hash}, $size,
		"$dir/out");
	ok(slurp("$dir/out") eq mix(1, $size),
		"presigned: hf_xet, $api");
}

# --------------------------------------------------------------------------
# the store refuses nginx's request, or does not have the object

my $new = $t->upload(mix(2, 3_000_000));

$entry = entry('/api', $new);
($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;

my %want = (403 => 503, 404 => 404, 500 => 500, 503 => 503);

for my $status (sort keys %want) {
	my $rule = $fault->add(op => 'GetObject', do => 'status',
		status => $status,
		headers => [ map { "$_: of-the-store" } said() ]);

	$r = $t->get($path, { Range => "bytes=$entry->{range}" });

	is($r->{status}, $want{$status}, "proxy: $status of the store");
	nothing_of_it("$status of the store", $r);
	ok(eval { $r->json()->{error}{code} }, "proxy: $status: JSON");
	$fault->clear();
}

for my $status (301, 302, 307, 308) {
	$fault->add(op => 'GetObject', do => 'status', status => $status,
		headers => [ 'Location: http://10.0.0.5:3900/xet/a' ]);

	$r = $t->get($path, { Range => "bytes=$entry->{range}" });

	is($r->{status}, 503, "proxy: $status of the store");
	is($r->header_value('Location'), undef,
		"proxy: $status: nobody is sent to the store");
	ok(eval { $r->json()->{error}{code} }, "proxy: $status: JSON");
	$fault->clear();
}

$r = $t->get($path, { Range => "bytes=$entry->{range}" });
is($r->{status}, 206, 'proxy: none of that was cached');

$t->done();

# --------------------------------------------------------------------------

sub entry {
	my ($base, $of) = @_;

	my $r = $t->get("$base/v1/reconstructions/"
		. ($of || $file)->{hash})->json();
	my ($entry) = map { @$_ } values %{ $r->{fetch_info} };

	return { url => $entry->{url}, range => join('-',
		@{ $entry->{url_range} }{qw/ start end /}) };
}

# Returns names of headers that stores send with an object.

sub said {
	return (qw/ ETag Server Set-Cookie Vary Cache-Control x-amzn-RequestId
		Access-Control-Allow-Origin Access-Control-Expose-Headers /,
		map { "x-amz-$_" } qw/ id-2 request-id version-id storage-class
		expiration replication-status server-side-encryption
		server-side-encryption-aws-kms-key-id
		server-side-encryption-bucket-key-enabled checksum-crc32
		checksum-crc32c checksum-crc64nvme checksum-sha1
		checksum-sha256 checksum-type meta-owner object-lock-mode
		X-From-Nowhere /);
}

# Checks that the response has none of the store's headers, by name or by value.

sub nothing_of_it {
	my ($name, $r) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my %headers = %{ $r->{headers} };
	my @of = grep { /^x-amzn?-/i || $_ eq 'set-cookie'
		|| "@{ $headers{$_} }" =~ /of-the-store|moto|werkzeug|xml
			|garage|ceph|s3proxy|s3s|jetty/ix } sort keys %headers;

	is_deeply([ map { "$_: @{ $headers{$_} }" } @of ], [],
		"proxy, $name: no header of the store's");
	like($r->header_value('Server') // '', qr/^nginx/,
		"proxy, $name: the server is nginx");

	my $etag = $r->header_value('ETag');

	ok(!defined $etag || $etag =~ /^"[0-9a-f]{64}\.[0-9a-f]{8}"\z/,
		"proxy, $name: the ETag is the name") or diag($etag);
}

sub direct {
	my ($target, $range) = @_;

	return Test::Xet::HTTP->request($fault->port(), 'GET', $target, {
		Host => '127.0.0.1:' . $fault->port(),
		$range ? (Range => $range) : () });
}

sub gets {
	return scalar grep { $_->{op} eq 'GetObject' } $fault->seen();
}
