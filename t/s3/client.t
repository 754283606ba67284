#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The S3 client, src/store/s3, tested with build/tools/xet_s3: objects,
# multipart uploads, lists, signatures.  Also store failures, key changes, a
# wrong clock, and a private certificate.  XET_TEST_S3_TOOL names another build
# of the tool, for example one with a sanitizer.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use IPC::Open2;
use Test::Xet::Bytes;
use Test::Xet::HTTP;
use Test::Xet::Process qw/
	build_dir patience reap run_command slurp spew wait_for
/;
use Test::Xet::S3;
use Test::Xet::S3Fault;
use Time::HiRes qw/ time /;

$SIG{PIPE} = 'IGNORE';
$SIG{ALRM} = sub { diag('the test takes too long'); exit(1) };
alarm(patience(300));

my $tool = $ENV{XET_TEST_S3_TOOL} || build_dir() . '/tools/xet_s3';

plan(skip_all => "no $tool") unless -x $tool;
plan(skip_all => $_) for grep { $_ }
	Test::Xet::S3->missing($ENV{XET_TEST_S3} || 'moto');

my $dir = tempdir(CLEANUP => 1);
my $s3 = Test::Xet::S3->new(dir => "$dir/s3");
my $moto = $s3->name() eq 'moto';
my $fault = Test::Xet::S3Fault->new($s3, dir => "$dir/fault");

# conditional requests, except for stores that do not support them

my $conditional = $s3->name() ne 'garage';

# --------------------------------------------------------------------------
# a process with an S3 client, which executes commands one after the other

sub options {
	my (%o) = @_;

	my %all = (url => $s3->url(), endpoint => $fault->endpoint(),
		region => $s3->region(), credentials => $s3->credentials(),
		conditional => $conditional ? 1 : 0, %o);

	return map { "$_=$all{$_}" } grep { defined $all{$_} } sort keys %all;
}

sub client {
	my (%o) = @_;

	my $self = {};

	$self->{pid} = open2($self->{out}, $self->{in}, $tool, options(%o),
		'--');

	return $self;
}

# Returns the result of a command; {data} has the output before the result, and
# {took} the duration.

sub ask {
	my ($c, @words) = @_;

	my $began = time();
	my $in = $c->{in};
	my $many = $words[0] eq 'many' ? $words[1] : 1;

	print $in "@words\n";
	$in->flush();

	$c->{data} = [];

	my @results;

	while (@results < $many) {
		my $line = readline($c->{out});

		return 'DIED' unless defined $line;

		chomp($line);

		if ($line =~ /^(OK|NOT_FOUND|SHORT|EXISTS|AWAY|DENIED|NO_BUCKET
			|FULL|BAD|LOCAL|CONF|ENDED)(?:[ ](\d+)[ ](.*))?$/x)
		{
			push @results, $1;
			$c->{status} = $2;
			$c->{text} = $3;

		} else {
			push @{ $c->{data} }, $line;
		}
	}

	$c->{took} = time() - $began;

	return "@results";
}

sub leave {
	my ($c, $signal) = @_;

	close($c->{in});
	kill($signal, $c->{pid}) if $signal;
	reap($c->{pid}, 20) // kill('KILL', $c->{pid});
}

# Runs one command in a separate process.

sub once {
	my ($options, @words) = @_;

	my $c = client(%$options);
	my $result = ask($c, @words);

	leave($c);

	return $result;
}

sub is_result {
	my ($c, $words, $expected, $name) = @_;

	is(ask($c, @$words), $expected, $name)
		or diag($c->{status} // '', ' ', $c->{text} // '');
}

sub file {
	my ($name, $size) = @_;

	my $data = random_bytes(length($name) + $size, $size);

	spew("$dir/$name", $data);

	return ("$dir/$name", sha256_hex($data));
}

sub op {
	my ($name) = @_;

	return $fault->stats()->{op}{$name} || 0;
}

# --------------------------------------------------------------------------
# objects

my $c = client();

is_result($c, [ qw/ put a\/b hello / ], 'OK', 'put');
is_result($c, [ qw/ cat a\/b / ], 'OK', 'get of a small one');
is("@{ $c->{data} }", 'hello', 'what was put');
is_result($c, [ qw/ get a\/b 1 3 / ], 'OK', 'get of a range');
is("@{ $c->{data} }", sha256_hex('ell'), 'its bytes');
is_result($c, [ qw/ get a\/b 3 3 / ], 'SHORT', 'a range past the end');
is_result($c, [ qw/ get a\/b 9 3 / ], 'SHORT', 'a range behind the end');
is_result($c, [ qw/ get a\/b 9 0 / ], 'OK', 'no bytes at all');
is_result($c, [ qw/ head a\/b / ], 'OK', 'head');
like("@{ $c->{data} }", qr/^5 \d{10} \d{10}$/, 'size and times');
cmp_ok(abs((split(' ', "@{ $c->{data} }"))[$_] - time()), '<', 100,
	qw/ size modified now /[$_] . ' is by the clock') for 1, 2;
is_result($c, [ qw/ put a\/b other new / ], 'EXISTS', 'not in its place');
is_result($c, [ qw/ put a\/n other new / ], 'OK', 'a new one');
is_result($c, [ qw/ copy a\/b a\/c / ], 'OK', 'copy');
is_result($c, [ qw/ copy a\/b a\/n new / ], 'EXISTS', 'copy, not in place');
is_result($c, [ qw/ copy a\/b a\/m new / ], 'OK', 'copy to a new one');
is_result($c, [ qw/ copy a\/x a\/y / ], 'NOT_FOUND', 'copy of nothing');
is_result($c, [ qw/ cat a\/x / ], 'NOT_FOUND', 'get of nothing');
is_result($c, [ qw/ head a\/x / ], 'NOT_FOUND', 'head of nothing');
is_result($c, [ qw/ rm a\/m / ], 'OK', 'delete');
is_result($c, [ qw/ rm a\/m / ], 'OK', 'delete of nothing');
is(join(' ', map { $s3->get("a/$_")->{body} } qw/ b c n /),
	'hello hello other', 'what the store has');

for my $name (qw{ /a a/ a//b a/../b . .. }, "a\xc3\xbc", 'a' x 512) {
	is(ask($c, 'put', $name, 'x'), 'CONF',
		'no name: ' . substr($name, 0, 9));
}

is_result($c, [ 'put', 'a!$&()*+,;=:@[]~%2F', 'x' ], 'OK', 'a wild name');
is($s3->get('a!$&()*+,;=:@[]~%2F')->{body}, 'x', 'which is whole');
is_result($c, [ 'copy', 'a!$&()*+,;=:@[]~%2F', 'w' ], 'OK', 'and copied');

# a prefix, and the same bucket without a prefix

my $p = client(url => $s3->url() . '/p/q/');

is_result($p, [ qw/ put a\/b deep / ], 'OK', 'below a prefix');
is($s3->get('p/q/a/b')->{body}, 'deep', 'where it is');
is_result($p, [ qw/ ls - / ], 'OK', 'a list below the prefix');
like("@{ $p->{data} }", qr/^a\/b 4 -?\d{1,2}$/, 'has names below it');
leave($p);

# the bucket in the host name

SKIP: {
	skip('the store knows paths only', 6) if $s3->name() eq 's3proxy';

	my $v = client(endpoint => $s3->vhost_endpoint(), path_style => 0);

	is_result($v, [ qw/ put v\/b virtual / ], 'OK',
		'in the name of the host');
	is_result($v, [ qw/ cat v\/b / ], 'OK', 'and back');
	is_result($v, [ qw/ ls v\/ / ], 'OK', 'and a list');
	is_result($v, [ qw/ head v\/x / ], 'NOT_FOUND', 'and nothing');
	is_result($v, [ qw/ copy v\/b v\/c / ], 'OK', 'and a copy');
	leave($v);
	is($s3->get('v/c')->{body}, 'virtual', 'is in the same bucket');
}

# one connection is reused for all requests

$fault->zero();
ask($c, 'cat', 'a/b') for 1 .. 5;
cmp_ok($fault->stats()->{connections} // 0, '<=', 1, 'a connection is kept');

# --------------------------------------------------------------------------
# lists

is(ask($c, qw/ many 32 put l\/{} text /), join(' ', ('OK') x 32),
	'32 threads put');

my @names = sort map { "l/$_" } 0 .. 31;

is_result($c, [ qw/ ls l\/ / ], 'OK', 'a list');
is_deeply([ map { (split)[0] } @{ $c->{data} } ], \@names, 'all of them');
is_result($c, [ qw/ ls l\/ 10 / ], 'OK', 'its begin');
is_deeply([ map { (split)[0] } @{ $c->{data} } ], [ @names[0 .. 9] ], 'ten');
is_result($c, [ qw/ ls l\/ 100 /, $names[9] ], 'OK', 'the rest');
is_deeply([ map { (split)[0] } @{ $c->{data} } ], [ @names[10 .. 31] ],
	'behind the tenth');
is_result($c, [ qw/ ls none\/ / ], 'OK', 'an empty list');
is("@{ $c->{data} }", '', 'has nothing');

SKIP: {
	skip('more than a page takes too long', 2) unless $moto;

	ask($c, qw/ many 64 put /, "page/$_-{}", 'x') for 1 .. 16;

	is_result($c, [ qw/ ls page\/ 5000 / ], 'OK', 'a list of two pages');
	is(scalar @{ $c->{data} }, 1024, 'all of both');
}

# a list that never ends

my $xml = '<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>'
	. 'l/0</Key><Size>1</Size></Contents></ListBucketResult>';

$fault->add(op => 'ListObjectsV2', do => 'status', status => 200,
	body => $xml);
is_result($c, [ qw/ ls l\/ 9 / ], 'BAD', 'a list that does not go on');
$fault->clear();

# --------------------------------------------------------------------------
# uploads

my $part = 5 << 20;

for ([ 0, 0, 1 ], [ 1000, 0, 1 ], [ $part, 0, 1 ], [ $part + 1, 2, 0 ],
	[ 4 * $part, 4, 0 ])
{
	my ($size, $parts, $puts) = @$_;
	my ($file, $sum) = file("file.$size", $size);

	$fault->zero();
	is_result($c, [ 'upload', "u/$size", $file ], 'OK', "$size bytes");
	is(join(' ', map { op($_) } qw/ PutObject UploadPart
		CompleteMultipartUpload /), "$puts $parts "
		. ($parts ? 1 : 0), "$size bytes: $parts parts");
	is(sha256_hex($s3->get("u/$size")->{body}), $sum, "$size bytes: all");
}

my ($big, $sum) = ("$dir/file." . 4 * $part,
	sha256_hex(slurp("$dir/file." . 4 * $part)));

is_result($c, [ 'get', 'u/' . 4 * $part, 0, 4 * $part ], 'OK', 'big get');
is("@{ $c->{data} }", $sum, 'all of it');
is_result($c, [ 'upload', 'u/0', $big, 'new' ], 'EXISTS',
	'an upload in parts in no other\'s place');
is($s3->get('u/0')->{body}, '', 'which stays');
is_result($c, [ 'upload', 'u/0', "$dir/file.1000", 'new' ], 'EXISTS',
	'nor in one request');
is_result($c, [ 'rename', 'u/x', 'u/y', "$dir/file.1000" ], 'OK',
	'another name at the end');
is(length($s3->get('u/y')->{body}), 1000, 'while nothing was sent');
is_result($c, [ 'rename', 'u/x', 'u/z', $big ], 'CONF', 'but not later');
is_result($c, [ 'drop', 'u/x', $big ], 'OK', 'an upload without an end');
is($s3->head('u/x')->{status}, 404, 'is no object');

SKIP: {
	skip('the store does not list uploads', 6) if $s3->name() eq 's3s';

	ok(wait_for(20, sub { !$s3->uploads() }), 'and nothing is left of it');
	leave($c);

	# the client is killed during an upload

	$fault->add(op => 'UploadPart', do => 'wait', ms => 60000);
	$c = client();
	print { $c->{in} } "upload u/x $big\n";
	$c->{in}->flush();
	ok(wait_for(10, sub { scalar $s3->uploads() }), 'an upload');
	leave($c, 'KILL');
	$fault->clear();

	$c = client();
	SKIP: {
		skip('to moto all of them are old', 2) if $moto;

		is_result($c, [ qw/ sweep u\/ 3600 / ], 'OK', 'a sweep');
		is("@{ $c->{data} } " . $s3->uploads(), '0 1',
			'is for old ones only');
	}

	is_result($c, [ qw/ sweep u\/ 0 / ], 'OK', 'another sweep');
	is("@{ $c->{data} } " . $s3->uploads(), '1 0', 'takes it');
	leave($c);
}

# eight concurrent uploads, over four connections

$fault->drop();
$fault->zero();
$c = client(connections => 4, timeout => 60000);
is(ask($c, qw/ many 8 upload v\/{} /, $big), join(' ', ('OK') x 8),
	'eight uploads at once');
cmp_ok($fault->stats()->{connections}, '<=', 4, 'over four connections');
is(join(' ', map { $s3->head("v/$_")->header_value('Content-Length') }
	0 .. 7), join(' ', (4 * $part) x 8), 'all are there');
leave($c);

# --------------------------------------------------------------------------
# a store that fails, then recovers

$c = client(timeout => 8000);

# radosgw's response at the end of an upload

my $no_etag = '<CompleteMultipartUploadResult><Key>f</Key><ETag></ETag>'
	. '</CompleteMultipartUploadResult>';

for (
	[ 'PUT, 503', [ qw/ put f\/1 x / ], op => 'PutObject', do => 'status',
		status => 503, count => 2 ],
	[ 'PUT, no answer', [ qw/ put f\/2 x new / ], op => 'PutObject',
		do => 'lost', count => 1 ],
	[ 'PUT, closed', [ qw/ put f\/3 x / ], op => 'PutObject',
		do => 'drop', count => 1 ],
	[ 'PUT, 429', [ qw/ put f\/4 x / ], op => 'PutObject', do => 'status',
		status => 429, code => 'TooMany', count => 1 ],
	[ 'GET, 500', [ qw/ cat a\/b / ], op => 'GetObject', do => 'status',
		status => 500, count => 2 ],
	[ 'GET, cut', [ qw/ cat a\/b / ], op => 'GetObject', do => 'cut',
		count => 1 ],
	[ 'GET, reset', [ qw/ cat a\/b / ], op => 'GetObject', do => 'cut',
		reset => 1, count => 1 ],
	[ 'GET, stalls', [ qw/ cat a\/b / ], op => 'GetObject', do => 'hold',
		ms => 30000, count => 1 ],
	[ 'HEAD, 503', [ qw/ head a\/b / ], op => 'HeadObject',
		do => 'status', status => 503, count => 1 ],
	[ 'DELETE, no answer', [ qw/ rm a\/c / ], op => 'DeleteObject',
		do => 'lost', count => 1 ],
	[ 'list, cut', [ qw/ ls a\/ / ], op => 'ListObjectsV2', do => 'cut',
		count => 1 ],
	[ 'copy, no answer', [ qw/ copy a\/b f\/5 / ], op => 'CopyObject',
		do => 'lost', count => 1 ],
	[ 'begin of an upload', [ 'upload', 'f/6', $big ],
		op => 'CreateMultipartUpload', do => 'status', status => 503,
		count => 1 ],
	[ 'begin of an upload, no answer', [ 'upload', 'f/7', $big ],
		op => 'CreateMultipartUpload', do => 'lost', count => 1 ],
	[ 'a part', [ 'upload', 'f/8', $big ], op => 'UploadPart',
		do => 'status', status => 500, count => 5 ],
	[ 'a part, refused early', [ 'upload', 'f/14', $big ],
		op => 'UploadPart', do => 'status', status => 503, early => 1,
		count => 2 ],
	[ 'a part, cut', [ 'upload', 'f/9', $big ], op => 'UploadPart',
		do => 'cut', way => 'request', count => 2 ],
	[ 'end of an upload', [ 'upload', 'f/10', $big, 'new' ],
		op => 'CompleteMultipartUpload', do => 'status',
		status => 503, count => 1 ],
	[ 'end of an upload, 200 with an error', [ 'upload', 'f/11', $big ],
		op => 'CompleteMultipartUpload', do => 'status',
		status => 200, code => 'InternalError', count => 1 ],
	[ 'end of an upload, no answer', [ 'upload', 'f/12', $big, 'new' ],
		op => 'CompleteMultipartUpload', do => 'lost', count => 1 ],
	[ 'end of an upload, 200 without an ETag', [ 'upload', 'f/15', $big ],
		op => 'CompleteMultipartUpload', do => 'status',
		status => 200, done => 1, body => $no_etag, count => 1 ],
	[ 'copy, 200 with an error', [ qw/ copy a\/b f\/13 / ],
		op => 'CopyObject', do => 'status', status => 200,
		code => 'SlowDown', count => 1 ],
) {
	my ($name, $words, %rule) = @$_;
	my $rule = $fault->add(%rule);

	is_result($c, $words, 'OK', $name);
	is($fault->used($rule), $rule{count}, "$name: it was tried");
	$fault->clear();

	next unless $words->[0] eq 'upload';

	ok(sha256_hex($s3->get($words->[1])->{body}) eq $sum, "$name: whole");
}

# a byte that changes on the way to the store

SKIP: {
	skip('the store takes other bytes', 2) if $s3->name() eq 's3s';

	$fault->add(op => 'PutObject', do => 'flip', way => 'request',
		count => 1);
	is_result($c, [ qw/ put f\/flip hello / ], 'OK', 'another byte');
	is($s3->get('f/flip')->{body}, 'hello', 'does not get in');
	$fault->clear();
}

# the checksum that the store reports differs

$fault->add(op => 'PutObject', do => 'status', status => 200, body => '',
	headers => [ 'x-amz-checksum-sha256: ' . 'A' x 43 . '=' ],
	count => 1);
is_result($c, [ qw/ put f\/sum hello / ], 'OK', 'and it is something else');
is($s3->get('f/sum')->{body}, 'hello', 'sent again');
$fault->clear();

# an older object of the same name is not mistaken for this upload

$s3->put('f/other', 'other');
$fault->add(op => 'PutObject', do => 'drop', count => 1);
is_result($c, [ qw/ put f\/other mine! new / ], 'EXISTS',
	'not sure, and another object is there');
$fault->clear();
is($s3->get('f/other')->{body}, 'other', 'unchanged');

SKIP: {
	skip('the store knows no condition', 1) unless $conditional;

	$s3->put('f/other2', 'other');
	$fault->add(op => 'CompleteMultipartUpload', do => 'drop', count => 1);
	is_result($c, [ 'upload', 'f/other2', $big, 'new' ], 'EXISTS',
		'the same with an upload');
	$fault->clear();
}

# a response without an ETag is accepted only if the object exists

$fault->add(op => 'CompleteMultipartUpload', do => 'status', status => 200,
	body => $no_etag, count => 1);
is_result($c, [ 'upload', 'f/16', $big ], 'BAD', '200, and no object');
is($s3->head('f/16')->{status}, 404, 'so there is none');
$fault->clear();

# a multipart upload that was deleted in the meantime is an error

$fault->add(op => 'CompleteMultipartUpload', do => 'status', status => 404,
	code => 'NoSuchUpload', count => 1);
is_result($c, [ 'upload', 'f/swept', $big ], 'AWAY', 'a deleted upload');
$fault->clear();
leave($c);

# --------------------------------------------------------------------------
# a store that fails permanently

$c = client(timeout => 1500);

for (
	[ 'GET, 503', 'AWAY', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'status', status => 503 ],
	[ 'PUT, 500', 'AWAY', [ qw/ put g\/1 x / ], op => 'PutObject',
		do => 'status', status => 500 ],
	[ 'GET, cut', 'BAD', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'cut' ],
	[ 'upload, 503', 'AWAY', [ 'upload', 'g/2', $big ],
		op => 'UploadPart', do => 'status', status => 503 ],
	[ 'retry later', 'AWAY', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'status', status => 503, retry_after => 60 ],
	[ 'a quota', 'FULL', [ qw/ put g\/3 x / ], op => 'PutObject',
		do => 'status', status => 403, code => 'QuotaExceeded' ],
	[ '507', 'FULL', [ qw/ put g\/3 x / ], op => 'PutObject',
		do => 'status', status => 507, code => 'Full' ],
	[ '501', 'BAD', [ qw/ put g\/3 x / ], op => 'PutObject',
		do => 'status', status => 501, code => 'NotImplemented' ],
	[ '404 of somebody else', 'BAD', [ qw/ cat a\/b / ],
		op => 'GetObject', do => 'status', status => 404,
		body => 'no page' ],
	[ 'more bytes than asked for', 'BAD', [ qw/ get a\/b 0 2 / ],
		op => 'GetObject', do => 'status', status => 206,
		body => 'xxx', headers => [ 'Content-Range: bytes 0-1/5' ] ],
	[ 'other bytes than asked for', 'BAD', [ qw/ get a\/b 0 2 / ],
		op => 'GetObject', do => 'status', status => 206,
		body => 'xx', headers => [ 'Content-Range: bytes 1-2/5' ] ],
	[ 'a list that is none', 'BAD', [ qw/ ls a\/ / ],
		op => 'ListObjectsV2', do => 'status', status => 200,
		body => '<html/>' ],
	[ 'a copy that is none', 'BAD', [ qw/ copy a\/b g\/4 / ],
		op => 'CopyObject', do => 'status', status => 200,
		body => '' ],
	[ 'an upload without an id', 'BAD', [ 'upload', 'g/5', $big ],
		op => 'CreateMultipartUpload', do => 'status', status => 200,
		body => '<x/>' ],
	[ 'a long error', 'BAD', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'status', status => 400, body => 'x' x 100_000 ],
	[ 'a long head', 'BAD', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'status', status => 200,
		headers => [ map { "x-$_: " . 'x' x 4000 } 1 .. 20 ] ],
	[ 'another region', 'CONF', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'status', status => 301, code => 'PermanentRedirect',
		headers => [ 'x-amz-bucket-region: eu-west-3',
			'Location: http://127.0.0.1:9/' ] ],
	[ 'another region', 'CONF', [ qw/ cat a\/b / ], op => 'GetObject',
		do => 'status', status => 400,
		body => '<Error><Code>AuthorizationHeaderMalformed</Code>'
			. '<Region>eu-west-3</Region></Error>' ],
) {
	my ($name, $expected, $words, %rule) = @$_;
	my $rule = $fault->add(%rule);

	is_result($c, $words, $expected, "$name: $expected");
	cmp_ok($c->{took}, '<', patience(6), "$name: in time");
	like($c->{text}, qr/eu-west-3/, "$name: is told")
		if $expected eq 'CONF';
	cmp_ok($fault->used($rule), '==', 1, "$name: once")
		if $expected =~ /CONF|FULL/ || $rule{retry_after};
	$fault->clear();
}

is($s3->head("g/$_")->{status}, 404, "g/$_ was not put") for 1 .. 5;

# --------------------------------------------------------------------------
# no response

$fault->close();
is_result($c, [ qw/ cat a\/b / ], 'AWAY', 'no store');
cmp_ok($c->{took}, '>', 0.5, 'it was tried for a while');

is_result($c, [ qw/ cat a\/b / ], 'AWAY', 'still none');
cmp_ok($c->{took}, '<', 0.4, 'which is told at once');
like($c->{text}, qr/has not answered for \d+ s/, 'and why');
is(ask($c, qw/ many 8 head a\/b /), join(' ', ('AWAY') x 8),
	'to all threads');
$fault->open();
ok(wait_for(5, sub { return ask($c, qw/ cat a\/b /) eq 'OK' }),
	'the store is back');
is(ask($c, qw/ many 8 head a\/b /), join(' ', ('OK') x 8),
	'for all threads');

# the store is frozen

$s3->freeze();
is_result($c, [ qw/ cat a\/b / ], 'AWAY', 'a store that does not respond');
cmp_ok($c->{took}, '<', patience(4), 'in time');
$s3->thaw();
ok(wait_for(10, sub { return ask($c, qw/ cat a\/b /) eq 'OK' }),
	'it goes on');
leave($c);

# --------------------------------------------------------------------------
# a process exits while its other threads work: nothing is logged that would
# alarm an operator

$c = client();
is_result($c, [ qw/ cat a\/b / ], 'OK', 'before the end');
is_result($c, [ qw/ stop / ], 'OK', 'the end');
is_result($c, [ qw/ cat a\/b / ], 'ENDED', 'no request after the end');
like($c->{text}, qr/has ended/, 'with the reason');
is_result($c, [ qw/ stop / ], 'OK', 'twice');
leave($c);

# --------------------------------------------------------------------------
# changing keys

my %old = (key => $s3->key(), secret => $s3->secret());

$c = client(timeout => 4000);
is_result($c, [ qw/ cat a\/b / ], 'OK', 'with the keys of the file');

$s3->write_credentials(secret => 'f' x 64);
is_result($c, [ qw/ cat a\/b / ], 'OK', 'not read without a reason');
is_result($c, [ qw/ reload / ], 'OK', 'but when it is told to');
is_result($c, [ qw/ cat a\/b / ], 'DENIED', 'a wrong secret');
is($c->{status}, 403, 'refused by the store');
unlike($c->{text}, qr/f{8}|Signature=|[0-9a-f]{64}/, 'nothing secret is told');
is_result($c, [ qw/ put a\/b x / ], 'DENIED', 'a wrong secret, put');
is_result($c, [ qw/ head a\/b / ], 'DENIED', 'a wrong secret, head');
is_result($c, [ 'upload', 'k/1', $big ], 'DENIED', 'a wrong secret, upload');
$s3->write_credentials();
is_result($c, [ qw/ cat a\/b / ], 'OK', 'the right one, without a word');

$s3->rotate();
is_result($c, [ qw/ cat a\/b / ], 'OK', 'rotated keys');
$s3->rotate();
is_result($c, [ 'upload', 'k/2', $big ], 'OK', 'rotated keys, an upload');
ok(sha256_hex($s3->get('k/2')->{body}) eq $sum, 'which is whole');
$s3->rotate(file => 0);
is_result($c, [ qw/ cat a\/b / ], 'DENIED', 'the file is not there yet');
$s3->write_credentials();
is_result($c, [ qw/ cat a\/b / ], 'OK', 'now it is');

# if the new file is invalid, the client keeps its keys

my $good = slurp($s3->credentials());

for (
	[ '', 'are missing' ],
	[ "[other]\naws_access_key_id = a\n", 'are missing' ],
	[ "[default]\naws_access_key_id = a\n",
		'no "aws_secret_access_key"' ],
	[ "[default]\naws_secret_access_key = a\n",
		'no "aws_access_key_id"' ],
	[ "[default]\naws_access_key_id\n", 'without "="' ],
	[ "[default]\naws_access_key_id = a b\n", 'can\'t be one' ],
	[ "[default]\naws_access_key_id = " . 'a' x 128 . "\n",
		'can\'t be one' ],
	[ "[default]\0\n", 'zero byte' ],
	[ "#" x 70000, 'too large' ],
) {
	my ($text, $why) = @$_;

	spew($s3->credentials(), $text);
	is_result($c, [ qw/ reload / ], 'CONF', "keys: $why");
	like($c->{text}, qr/\Q$why\E/i, "keys: $why, it is told");
}

unlink($s3->credentials());
is_result($c, [ qw/ reload / ], 'CONF', 'no file');
like($c->{text}, qr/\Q${\ $s3->credentials() }\E.*No such file/, 'is told');
is_result($c, [ qw/ cat a\/b / ], 'OK', 'with the keys from before');

spew($s3->credentials(), "# comment\n; another\n[x]\n" . ($good
	=~ s/\[default\]/[ profile two ]/r) . "region = a b\r\n[default]\n");
is(once({ profile => 'two' }, qw/ cat a\/b /), 'OK', 'another profile');
$s3->write_credentials();
leave($c);

# session keys, then permanent keys

SKIP: {
	skip('the store has no sessions', 3) unless $moto;

	$c = client();
	$s3->rotate(token => 'a+token/of==');
	is_result($c, [ qw/ cat a\/b / ], 'OK', 'keys of a session');
	$s3->rotate(token => 'b' x 2000);
	is_result($c, [ qw/ head a\/b / ], 'OK', 'and of the next one');
	$s3->rotate();
	is_result($c, [ qw/ cat a\/b / ], 'OK', 'and others again');
	leave($c);
}

# a session token is sent, and signed

$s3->write_credentials(token => 'a+token/of==');
$fault->zero();
once({ timeout => 1000 }, qw/ cat a\/b /);
my ($seen) = $fault->seen('GetObject');
my %sent = map { lc } map { %$_ } $seen->{headers};
is($sent{'x-amz-security-token'}, 'a+token/of==', 'the token of a session');
like($sent{authorization}, qr/signedheaders=[^,]*x-amz-security-token/,
	'is signed');
$s3->write_credentials();

# --------------------------------------------------------------------------
# a wrong clock: the client signs with the store's time

$c = client();

SKIP: {
	skip('the clock can\'t be set', 12) unless $moto;

	for my $fast (3000, -100_000, 0) {
		$s3->set_clock($fast);
		is_result($c, [ $fast < 0 ? qw/ head a\/b / : qw/ cat a\/b / ],
			'OK', "a clock that is $fast s fast");
		is_result($c, [ 'put', "c/$fast", 'x' ], 'OK', 'and put');
	}

	leave($c);

	my $date = 'Mon, 02 Feb 2026 03:04:05 GMT';

	$c = client();

	for my $verb (qw/ cat head /) {
		$fault->add(do => 'status', status => 403, count => 1,
			code => 'RequestTimeTooSkewed',
			headers => [ "Date: $date" ]);

		$fault->zero();
		is_result($c, [ $verb, 'a/b' ], 'OK', "$verb: a clock is off");

		my ($first, $second) = map { $_->{headers} } $fault->seen();

		like(join(' ', map { lc } %$second), qr/20260202t0304\d\dz/,
			"$verb: the store's time is signed with");
		$fault->clear();
	}

	leave($c);
}

# --------------------------------------------------------------------------
# the bucket was deleted

$c = client();
$s3->drop_bucket();

SKIP: {
	skip('the store makes a bucket of it', 6) if $s3->name() eq 's3s';

	is_result($c, [ qw/ cat a\/b / ], 'NO_BUCKET', 'no bucket: get');
	is_result($c, [ qw/ head a\/b / ], 'NO_BUCKET', 'no bucket: head');
	is_result($c, [ qw/ put a\/b x / ], 'NO_BUCKET', 'no bucket: put');
	is_result($c, [ qw/ rm a\/b / ], $s3->name() eq 's3proxy' ? 'OK'
		: 'NO_BUCKET', 'no bucket: delete');
	is_result($c, [ qw/ ls a\/ / ], 'NO_BUCKET', 'no bucket: list');
	is_result($c, [ 'upload', 'x', $big ], 'NO_BUCKET',
		'no bucket: upload');
}

$s3->make_bucket();
is_result($c, [ qw/ put a\/b hello / ], 'OK', 'a new bucket');
leave($c);

# --------------------------------------------------------------------------
# presigned URLs

$c = client(endpoint => $s3->endpoint());

is_result($c, [ qw/ presign GET a\/b 60 / ], 'OK', 'a URL');

my ($target) = $c->{data}[0] =~ m!^http://127\.0\.0\.1:\d+(/.*)!;

sub other {
	my ($method, $target_of, $headers, $body) = @_;

	return Test::Xet::HTTP->request($s3->port(), $method, $target_of,
		{ Host => $s3->host(), %$headers }, $body);
}

is(other('GET', $target, {})->{body}, 'hello', 'is good');
isnt(other('GET', $target =~ s/.$/0/r . '0', {})->{status}, 200,
	'another one is not');
is_result($c, [ qw/ presign GET a\/b 60 range bytes=1-2 / ], 'OK',
	'a URL of a range');
($target) = $c->{data}[0] =~ m!^http://127\.0\.0\.1:\d+(/.*)!;
is(other('GET', $target, { Range => 'bytes=1-2' })->{body}, 'el', 'is good');
isnt(other('GET', $target, { Range => 'bytes=1-3' })->{status}, 206,
	'and no other range is');
is_result($c, [ qw/ presign PUT a\/p 60 content-length 3 / ], 'OK',
	'a URL to put');
($target) = $c->{data}[0] =~ m!^http://127\.0\.0\.1:\d+(/.*)!;
is(other('PUT', $target, { 'Content-Length' => 3 }, 'put')->{status}, 200,
	'is good');
is($s3->get('a/p')->{body}, 'put', 'what was put');

is_result($c, [ qw/ sign GET a\/b / ], 'OK', 'headers');

my ($host, $path, $authorization, $date) = @{ $c->{data} };

is(other('GET', $path, { Host => $host, Authorization => $authorization,
	'x-amz-date' => $date, Range => 'bytes=0-1',
	'x-amz-content-sha256' => 'UNSIGNED-PAYLOAD' })->{body}, 'he',
	'are good, for any range');
leave($c);

# --------------------------------------------------------------------------
# TLS

my $tls = Test::Xet::S3Fault->new($s3, dir => "$dir/tls", tls => 1);

is(once({ endpoint => $tls->endpoint(), certificate => $tls->certificate() },
	qw/ cat a\/b /), 'OK', 'TLS with a certificate of one\'s own');

$c = client(endpoint => $tls->endpoint());
is_result($c, [ qw/ cat a\/b / ], 'AWAY', 'not without it');
like($c->{text}, qr/certificate/i, 'which is told');
leave($c);

$c = client(endpoint => $tls->endpoint(), certificate => '/nowhere');
is_result($c, [ qw/ cat a\/b / ], 'AWAY', 'nor with a file that is not there');
leave($c);

# --------------------------------------------------------------------------
# invalid configurations

for (
	[ { url => 'xet' }, 's3://bucket' ],
	[ { url => 's3://' }, 'name of the bucket' ],
	[ { url => 's3://ab' }, 'name of the bucket' ],
	[ { url => 's3://a_b' }, 'name of the bucket' ],
	[ { url => 's3://-ab' }, 'name of the bucket' ],
	[ { url => 's3://a..b' }, 'name of the bucket' ],
	[ { url => 's3://' . 'a' x 64 }, 'name of the bucket' ],
	[ { url => 's3://abc//x' }, 'prefix' ],
	[ { url => 's3://abc/../x' }, 'prefix' ],
	[ { url => 's3://abc/' . 'x' x 512 }, 'prefix' ],
	[ { endpoint => '127.0.0.1' }, 'endpoint' ],
	[ { endpoint => 'ftp://127.0.0.1' }, 'endpoint' ],
	[ { endpoint => 'http://a@127.0.0.1' }, 'endpoint' ],
	[ { endpoint => 'http://127.0.0.1/x' }, 'endpoint' ],
	[ { endpoint => 'http://' }, 'endpoint' ],
	[ { endpoint => 'http://' . 'h' x 300 }, 'endpoint' ],
	[ { path_style => 0 }, 'path style' ],
	[ { region => 'a b' }, 'region' ],
	[ { region => 'a' x 33 }, 'region' ],
	[ { timeout => 99 }, 'timeout' ],
	[ { connections => 0 }, 'connections' ],
	[ { part => $part - 1 }, 'part' ],
	[ { credentials => undef }, 'credentials' ],
	[ { credentials => "$dir/none" }, 'No such file' ],
	[ { profile => 'none' }, 'are missing' ],
) {
	my ($options, $why) = @$_;
	my ($status, $out) = run_command([ $tool, options(%$options), '--',
		'ls', '-' ]);

	is($status >> 8, 10, "no client: $why") or diag($out);
	like($out, qr/\Q$why\E/, "no client: $why, it is told");
}

done_testing();
