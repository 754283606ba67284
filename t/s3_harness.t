#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The stores and the fault proxy that tests of S3 stand on: signatures are
# checked, keys change, the store goes away and comes back.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use File::Temp qw/ tempdir /;
use Test::Xet::Bytes;
use Test::Xet::HTTP;
use Test::Xet::Process qw/ patience run_command spew wait_for /;
use Test::Xet::S3;
use Time::HiRes qw/ time /;

$SIG{PIPE} = 'IGNORE';
$SIG{ALRM} = sub { diag('the test takes too long'); exit(1) };
alarm(patience(300));

my $dir = tempdir(CLEANUP => 1);
my $s3 = Test::Xet::S3->new(dir => "$dir/s3");
my $moto = $s3->name() eq 'moto';

*code = \&Test::Xet::S3::code;

sub refused {
	my ($r, $status, $code, $name) = @_;

	is("$r->{status} " . code($r), "$status $code", $name);
}

# --------------------------------------------------------------------------
# objects

my $data = random_bytes(1, 100000);
my $name = 'a/b c/' . "\xc3\xbc" . '+%2F~*';

is($s3->put($name, $data)->{status}, 200, 'put');
is($s3->get($name)->{body}, $data, 'get');
is($s3->head($name)->header_value('Content-Length'), 100000, 'head');
is_deeply($s3->objects(), { $name => 100000 }, 'objects');
is_deeply($s3->objects('b'), {}, 'objects below a prefix');

my $r = $s3->get($name, headers => { Range => 'bytes=10-19' });

is("$r->{status} $r->{body}", '206 ' . substr($data, 10, 10), 'a range');

refused($s3->get('none'), 404, 'NoSuchKey', 'an object that is not there');
refused($s3->get('x', bucket => 'none'), 404, 'NoSuchBucket',
	'a bucket that is not there');
is($s3->delete($name)->{status}, 204, 'delete');
is_deeply($s3->objects(), {}, 'deleted');

# --------------------------------------------------------------------------
# signatures

$s3->put('x', $data);

refused($s3->get('x', secret => 'f' x 64), 403, 'SignatureDoesNotMatch',
	'another secret');
is($s3->get('x', key => 'GK' . '0' x 24)->{status}, 403, 'another key');
refused($s3->get('x', secret => 'f' x 64, presign => 60), 403,
	'SignatureDoesNotMatch', 'another secret, URL');
is(Test::Xet::HTTP->request($s3->port(), 'GET', '/xet/x',
	{ Host => $s3->host() })->{status}, 403, 'no signature');
is($s3->put('x', 'other', secret => 'f' x 64)->{status}, 403,
	'another secret, put');
is($s3->get('x')->{body}, $data, 'nothing was put');
is($s3->get('x', presign => 60)->{body}, $data, 'URL');
is($s3->get('x', presign => 60, time => time() - 120)->{status}, 403,
	'URL that has expired');

my $url = $s3->signed('GET', 'x', presign => 60,
	headers => { Range => 'bytes=0-4' });

sub ask {
	my ($target, %headers) = @_;

	return Test::Xet::HTTP->request($s3->port(), 'GET', $target,
		{ Host => $s3->host(), %headers });
}

is(ask($url->{target}, Range => 'bytes=0-4')->{body}, substr($data, 0, 5),
	'URL with a range under its signature');
is(ask($url->{target}, Range => 'bytes=0-5')->{status}, 403,
	'URL with another range');
is(ask($url->{target})->{status}, 403, 'URL without its range');

SKIP: {
	skip('real stores differ, see t/README.md', 12) unless $moto;

	refused($s3->get('x', time => time() - 1000), 403,
		'RequestTimeTooSkewed', 'a clock that is late');
	refused($s3->get('x', time => time() + 1000), 403,
		'RequestTimeTooSkewed', 'a clock that is early');
	refused($s3->get('x', region => 'eu-west-1'), 400,
		'AuthorizationHeaderMalformed', 'another region');
	refused($s3->get('x', token => 'abc'), 400, 'InvalidToken',
		'a token of a session');
	refused($s3->get('x', loose => [ 'x-amz-foo' ],
		headers => { 'x-amz-foo' => 1 }), 403, 'AccessDenied',
		'a header that is not signed');
	refused($s3->put('y', 'data', payload => '0' x 64), 400,
		'XAmzContentSHA256Mismatch', 'another body');
	refused($s3->put('y', 'data', headers => {
		'x-amz-checksum-crc64nvme' => 'AAAAAAAAAAA=' }), 400,
		'BadDigest', 'another CRC-64/NVME');
	refused($s3->put('y', 'data', headers => {
		'x-amz-checksum-sha256' => 'AAAA' }), 400, 'BadDigest',
		'another SHA-256');
	is($s3->put('y', '123456789', headers => {
		'x-amz-checksum-crc64nvme' => 'rosUhgp5mIg=' })->{status}, 200,
		'the right CRC-64/NVME');
	is($s3->put('y', 'data', payload => 'UNSIGNED-PAYLOAD')->{status},
		200, 'a body without a signature');
	refused($s3->put('x', 'data', headers => { 'If-None-Match' => '*' }),
		412, 'PreconditionFailed', 'only if it is not there');
	is(won(8), 1, 'of eight at once one puts it');
}

# How many of n that put the same at the same time are told that they did.

sub won {
	my ($n) = @_;

	my @connections = map { Test::Xet::HTTP->new($s3->port()) } 1 .. $n;

	for my $i (0 .. $#connections) {
		my $r = $s3->signed('PUT', 'new', body => "data $i",
			headers => { 'If-None-Match' => '*' });

		$connections[$i]->start('PUT', $r->{target},
			{ %{ $r->{headers} }, 'Content-Length' => 6 });
	}

	$connections[$_]->send("data $_") for 0 .. $#connections;

	return scalar grep { $_->response('PUT')->{status} == 200 }
		@connections;
}

# --------------------------------------------------------------------------
# another client, which is not ours: signatures of ours are those of AWS

SKIP: {
	my $python = Test::Xet::Process::build_dir() . '/s3/moto/bin/python';

	skip('no boto3, run t/clients/setup.sh', 2) unless -x $python;

	spew("$dir/boto.py", <<'EOF');
import sys, boto3
from botocore.config import Config

endpoint, region, bucket = sys.argv[1:]
s3 = boto3.client('s3', endpoint_url=endpoint, region_name=region,
                  config=Config(signature_version='s3v4',
                                s3={'addressing_style': 'path'}))
s3.put_object(Bucket=bucket, Key='boto/a b', Body=b'of boto')
print(s3.get_object(Bucket=bucket, Key='boto/a b')['Body'].read())
EOF

	my ($status, $out) = run_command([ $python, "$dir/boto.py",
		$s3->endpoint(), $s3->region(), $s3->bucket() ],
		env => { AWS_SHARED_CREDENTIALS_FILE => $s3->credentials() });

	is("$status $out", "0 b'of boto'\n", 'boto3, with the file of keys');
	is($s3->get('boto/a b')->{body}, 'of boto', 'and we read it');
}

is((stat($s3->credentials()))[2] & 07777, 0600, 'the file is private');

# --------------------------------------------------------------------------
# parts

my $xml = $s3->must('POST', 'parts', query => { uploads => '' })->{body};
my $id = Test::Xet::S3::text($xml, 'UploadId');

is_deeply([ $s3->uploads() ], [ { name => 'parts', id => $id } ],
	'an upload in parts');

my @etags = map { $s3->must('PUT', 'parts', body => part($_),
	query => { partNumber => $_, uploadId => $id })
	->header_value('ETag') } 1, 2;

sub part {
	return mix($_[0], $_[0] == 1 ? 5 << 20 : 1000);
}

is($s3->get('parts')->{status}, 404, 'no object yet');

$r = $s3->request('POST', 'parts', query => { uploadId => $id },
	body => '<CompleteMultipartUpload>' . join('', map {
		"<Part><PartNumber>$_</PartNumber><ETag>$etags[$_ - 1]</ETag>"
		. '</Part>' } 1, 2) . '</CompleteMultipartUpload>');

is($r->{status}, 200, 'completed');
ok($s3->get('parts')->{body} eq part(1) . part(2), 'the object');
is_deeply([ $s3->uploads() ], [], 'no upload is left');

$id = Test::Xet::S3::text($s3->must('POST', 'more',
	query => { uploads => '' })->{body}, 'UploadId');
$s3->must('PUT', 'more', query => { partNumber => 1, uploadId => $id },
	body => 'x');

is($s3->delete('more', query => { uploadId => $id })->{status}, 204,
	'an upload is given up');
is_deeply([ $s3->uploads() ], [], 'and gone');

# --------------------------------------------------------------------------
# the store is away

my $c = Test::Xet::HTTP->new($s3->port());

$s3->freeze();

$r = $s3->get('x', http => { timeout => 1 });

is("$r->{status} $r->{error}", '0 timeout', 'frozen: no answer');

$s3->thaw();

is($s3->get('x')->{body}, $data, 'and on it goes');

for my $how (qw/ stop kill /) {
	$s3->$how();

	ok(!eval { $s3->get('x'); 1 }, "$how: nobody is there");
	ok($c->closed(), "$how: connections are closed");

	$s3->start();

	is($s3->get('x')->{body}, $data, "$how: the object is there again");

	$c = Test::Xet::HTTP->new($s3->port());
}

# --------------------------------------------------------------------------
# keys

my $file = $s3->credentials();
my %old = (key => $s3->key(), secret => $s3->secret());

$s3->rotate(file => 0);

is($s3->get('x', %old)->{status}, 403, 'the old key is no longer good');
is($s3->get('x')->{body}, $data, 'the new one is');
like(Test::Xet::Process::slurp($file), qr/^aws_access_key_id = $old{key}$/m,
	'the file has the old one');

$s3->write_credentials();

my @keys = Test::Xet::Process::slurp($file) =~ /\A\[default\]\n
	aws_access_key_id[ ]=[ ](\w+)\n
	aws_secret_access_key[ ]=[ ](\w+)\n\z/x;

is("@keys", $s3->key() . ' ' . $s3->secret(), 'and now the new one');

# --------------------------------------------------------------------------
# the bucket is gone

$s3->drop_bucket();

refused($s3->get('x'), 404, 'NoSuchBucket', 'no bucket');
refused($s3->put('x', 'x'), 404, 'NoSuchBucket', 'no bucket, put');

$s3->make_bucket();

is_deeply($s3->objects(), {}, 'a new one is empty');

done_testing();
