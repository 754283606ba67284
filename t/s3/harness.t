#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The stores and the fault proxy that the S3 tests use: the store checks
# signatures, its keys can change, and it can stop and start again.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Temp qw/ tempdir /;
use Test::Xet::Bytes;
use Test::Xet::HTTP;
use Test::Xet::Process qw/ patience run_command spew wait_for /;
use Test::Xet::S3;
use Test::Xet::S3Fault;
use Time::HiRes qw/ time /;
use Time::Local qw/ timegm /;

$SIG{PIPE} = 'IGNORE';
$SIG{ALRM} = sub { diag('the test takes too long'); exit(1) };
alarm(patience(300));

my $dir = tempdir(CLEANUP => 1);
my $s3 = Test::Xet::S3->new(dir => "$dir/s3");
my $moto = $s3->name() eq 'moto';

*code = \&Test::Xet::S3::code;

# Stores phrase the same refusal differently, and some use a different status;
# t/README.md has a table.

sub refused {
	my ($r, $status, $code, $name) = @_;

	return is("$r->{status} " . code($r), "$status $code", $name) if $moto;

	ok($r->{status} == $status || $r->{status} == 400 && $status == 403,
		$name) or diag("$r->{status} $r->{body}");
}

# Compares bytes, without printing them on failure.

sub same {
	my ($r, $expected, $name) = @_;

	ok($r->{body} eq $expected, $name)
		or diag("$r->{status}, " . length($r->{body}) . ' bytes: '
			. substr($r->{body}, 0, 300));
}

# --------------------------------------------------------------------------
# objects

my $data = random_bytes(1, 100000);
my $name = 'a/b c/' . "\xc3\xbc" . '+%2F~*';

is($s3->put($name, $data)->{status}, 200, 'put');
same($s3->get($name), $data, 'get');
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
same($s3->get('x'), $data, 'nothing was put');
same($s3->get('x', presign => 60), $data, 'URL');
refused($s3->get('x', presign => 60, time => time() - 120), 403,
	'AccessDenied', 'URL that has expired');

my $url = $s3->signed('GET', 'x', presign => 60,
	headers => { Range => 'bytes=0-4' });

sub ask {
	my ($target, %headers) = @_;

	return Test::Xet::HTTP->request($s3->port(), 'GET', $target,
		{ Host => $s3->host(), %headers });
}

same(ask($url->{target}, Range => 'bytes=0-4'), substr($data, 0, 5),
	'URL with a range under its signature');
refused(ask($url->{target}, Range => 'bytes=0-5'), 403,
	'SignatureDoesNotMatch', 'URL with another range');
refused(ask($url->{target}), 403, 'SignatureDoesNotMatch',
	'URL without its range');

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

# Returns how many of n concurrent conditional PUTs of one object succeed.

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
# the bucket in the host name

SKIP: {
	skip('the store takes buckets from paths', 4)
		if $s3->name() eq 's3proxy';

	is($s3->put('host/a b', 'of a host', vhost => 1)->{status}, 200,
		'host: put');
	same($s3->get('host/a b'), 'of a host', 'host: the same bucket');
	refused($s3->get('x', vhost => 1, secret => 'f' x 64), 403,
		'SignatureDoesNotMatch', 'host: another secret');

	my $host = $s3->vhost_endpoint() =~ s!//!'//' . $s3->bucket() . '.'!er;
	my ($status, $out) = run_command([ 'curl', '-sS', $host . $s3->signed(
		'GET', 'host/a b', vhost => 1, presign => 60)->{target} ]);

	is("$status $out", '0 of a host', 'host: curl finds it');
}

# --------------------------------------------------------------------------
# another client's signature shows that the harness signs like AWS

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
	same($s3->get('boto/a b'), 'of boto', 'and we read it');
}

is((stat($s3->credentials()))[2] & 07777, 0600, 'the file is private');

SKIP: {
	skip('not root', 1) if $>;

	my $other = Test::Xet::S3->new(start => 0, user => 'nobody');

	is((stat($other->credentials()))[4], (getpwnam('nobody'))[2],
		'the file is that of another user');
}

# --------------------------------------------------------------------------
# multipart uploads

my $xml = $s3->must('POST', 'parts', query => { uploads => '' })->{body};
my $id = Test::Xet::S3::text($xml, 'UploadId');

my $lists = $s3->get('', query => { uploads => '' })->{status} != 501;

uploads([ { name => 'parts', id => $id } ], 'an upload in parts');

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
uploads([], 'no upload is left');

$id = Test::Xet::S3::text($s3->must('POST', 'more',
	query => { uploads => '' })->{body}, 'UploadId');
$s3->must('PUT', 'more', query => { partNumber => 1, uploadId => $id },
	body => 'x');

is($s3->delete('more', query => { uploadId => $id })->{status}, 204,
	'an upload is given up');
uploads([], 'and gone');

sub uploads {
	my ($expected, $name) = @_;

	SKIP: {
		skip('the store does not list uploads', 1) unless $lists;

		is_deeply([ $s3->uploads() ], $expected, $name);
	}
}

# --------------------------------------------------------------------------
# the store is down

my $c = Test::Xet::HTTP->new($s3->port());

$s3->freeze();

$r = $s3->get('x', http => { timeout => 1 });

is("$r->{status} $r->{error}", '0 timeout', 'frozen: no answer');

$s3->thaw();

same($s3->get('x'), $data, 'and on it goes');

for my $how (qw/ stop kill /) {
	$s3->$how();

	ok(!eval { $s3->get('x'); 1 }, "$how: nobody is there");
	ok($c->closed(), "$how: connections are closed");

	$s3->start();

	same($s3->get('x'), $data, "$how: the object is there again");

	$c = Test::Xet::HTTP->new($s3->port());
}

# --------------------------------------------------------------------------
# keys

my $file = $s3->credentials();
my %old = (key => $s3->key(), secret => $s3->secret());

$s3->rotate(file => 0);

is($s3->get('x', %old)->{status}, 403, 'the old key is no longer good');
same($s3->get('x'), $data, 'the new one is');
like(Test::Xet::Process::slurp($file), qr/^aws_access_key_id = $old{key}$/m,
	'the file has the old one');

$s3->write_credentials();

my @keys = Test::Xet::Process::slurp($file) =~ /\A\[default\]\n
	aws_access_key_id[ ]=[ ](\w+)\n
	aws_secret_access_key[ ]=[ ](\w+)\n\z/x;

is("@keys", $s3->key() . ' ' . $s3->secret(), 'and now the new one');

SKIP: {
	skip('neither sessions nor clocks', 8) unless $moto;

	$s3->rotate(token => 'of/a+session=');

	same($s3->get('x'), $data, 'a session');
	same($s3->get('x', presign => 60), $data, 'a session, URL');
	refused($s3->get('x', token => ''), 400, 'InvalidToken',
		'a session without its token');
	like(Test::Xet::Process::slurp($file),
		qr!^aws_session_token = of/a\+session=$!m,
		'its token is in the file');

	$s3->rotate();
	$s3->set_clock(7200);

	refused($s3->get('x', time => time()), 403, 'RequestTimeTooSkewed',
		'a clock of the store that is fast');

	my $r = $s3->get('x');

	same($r, $data, 'and right by itself');
	cmp_ok(abs(str2time($r->header_value('Date')) - time() - 7200), '<',
		10, 'as its answers say');

	$s3->set_clock(0);

	same($s3->get('x', time => time()), $data, 'set right');
}

sub str2time {
	my ($day, $month, $year, $h, $m, $s) = $_[0]
		=~ /^\w+, (\d+) (\w+) (\d+) (\d+):(\d+):(\d+) GMT$/ or return 0;
	my %month = (map { (qw/ Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov
		Dec /)[$_] => $_ } 0 .. 11);

	return timegm($s, $m, $h, $day, $month{$month}, $year);
}

# --------------------------------------------------------------------------
# the bucket was deleted

$s3->drop_bucket();

refused($s3->get('x'), 404, 'NoSuchBucket', 'no bucket');

SKIP: {
	skip('the store makes a bucket of it', 1) if $s3->name() eq 's3s';

	refused($s3->put('x', 'x'), 404, 'NoSuchBucket', 'no bucket, put');
}

$s3->make_bucket();

is_deeply($s3->objects(), {}, 'a new one is empty');

# --------------------------------------------------------------------------
# the fault proxy: requests pass through unchanged

my $fault = Test::Xet::S3Fault->new($s3, dir => "$dir/fault");

sub via {
	my ($method, $name, %o) = @_;

	return $s3->request($method, $name, port => $fault->port(), %o);
}

is(via('PUT', 'x', body => $data)->{status}, 200, 'proxy: put');
same(via('GET', 'x'), $data, 'proxy: get');
is(via('HEAD', 'x')->{status}, 200, 'proxy: head');
is(via('DELETE', 'x')->{status}, 204, 'proxy: delete');
refused(via('GET', 'x'), 404, 'NoSuchKey', 'proxy: an error');
refused(via('GET', 'x', secret => 'f' x 64), 403, 'SignatureDoesNotMatch',
	'proxy: signatures');
is(via('PUT', 'x', body => $data, http => { expect => 1 })->{status}, 200,
	'proxy: 100-continue');

my $stats = $fault->stats();

is($stats->{requests}, 7, 'proxy: requests');
is_deeply($stats->{op}, { PutObject => 2, GetObject => 3, HeadObject => 1,
	DeleteObject => 1 }, 'proxy: operations');
is($stats->{sent}, 200000, 'proxy: bytes to the store');
cmp_ok($stats->{got}, '>', 100000, 'proxy: bytes from the store');
is_deeply([ map { $_->{status} } $fault->seen('GET') ], [ 200, 404, 403 ],
	'proxy: requests that were seen');

$fault->zero();

$c = Test::Xet::HTTP->new($fault->port());

for (1 .. 3) {
	my $r = $s3->signed('GET', 'x');

	is($c->exchange('GET', $r->{target}, $r->{headers})->{body}, $data,
		"proxy: request $_ of a connection");
}

$stats = $fault->stats();

is("$stats->{connections} $stats->{requests}", '1 3', 'proxy: it was one');

$fault->drop();

ok($c->closed(), 'proxy: all connections dropped');

# --------------------------------------------------------------------------
# responses that the store did not send

my $rule = $fault->add(op => 'PUT', do => 'status', status => 503,
	retry_after => 7, count => 2);

for (1, 2) {
	$r = via('PUT', 'y', body => $data);
	refused($r, 503, 'SlowDown', "503, $_");
}

is($r->header_value('Retry-After'), 7, '503: Retry-After');
is(via('GET', 'y')->{status}, 404, '503: the store has seen nothing');
is(via('PUT', 'y', body => $data)->{status}, 200, '503: the third passes');
is($fault->used($rule), 2, '503: twice');

$fault->clear();

sub with {
	my ($rule, $method, $name, %o) = @_;

	my $number = $fault->add(%$rule);
	my $started = time();
	my $r = via($method, $name, %o);

	$r->{took} = time() - $started;

	is($fault->used($number), 1, "$rule->{do}: once") or diag($method);
	$fault->clear();

	return $r;
}

$r = with({ do => 'status', status => 500, early => 1 }, 'PUT', 'z',
	body => $data);

refused($r, 500, 'InternalError', '500 before the body');
is($s3->get('z')->{status}, 404, '500: the store has seen nothing');

$r = with({ do => 'status', done => 1 }, 'PUT', 'z', body => $data);

refused($r, 500, 'InternalError', '500 when it is done');
same($s3->get('z'), $data, '500: the store has it');

$r = with({ do => 'lost' }, 'PUT', 'lost', body => $data);

is($r->{status}, 0, 'lost: no answer');
same($s3->get('lost'), $data, 'lost: the store has it');

$r = with({ do => 'drop' }, 'PUT', 'drop', body => $data);

is($r->{status}, 0, 'drop: no answer');
is($s3->get('drop')->{status}, 404, 'drop: the store has nothing');

# --------------------------------------------------------------------------
# bodies

$r = with({ do => 'cut', op => 'GetObject' }, 'GET', 'x');

is("$r->{status} $r->{error}", '200 truncated response', 'cut: an answer');
is(length($r->{body}), 50000, 'cut: at half of it');

$r = with({ do => 'cut', at => 10, reset => 1 }, 'GET', 'x');

isnt($r->{error} // '', '', 'cut: an answer, by a reset');
cmp_ok(length($r->{body}), '<=', 10, 'cut: where we want it');

$r = with({ do => 'cut', way => 'request' }, 'PUT', 'cut', body => $data);

is($r->{status}, 0, 'cut: a request');
is($s3->get('cut')->{status}, 404, 'cut: is no object');
is(($fault->seen('PutObject'))[-1]{sent}, 50000, 'cut: half was sent');

$r = with({ do => 'flip', at => 7 }, 'GET', 'x');

is($r->{body} ^ $data, "\0" x 7 . "\1" . "\0" x 99992, 'flip: an answer');

$r = with({ do => 'flip', way => 'request' }, 'PUT', 'flip', body => $data);

cmp_ok($r->{status}, '>=', 400, 'flip: a request that is signed');
is($s3->get('flip')->{status}, 404, 'flip: is no object');

$r = with({ do => 'flip', way => 'request', at => 0, mask => 255 }, 'PUT',
	'flip', body => $data, payload => 'UNSIGNED-PAYLOAD');

is($s3->get('flip')->{body}, chr(255 - ord($data)) . substr($data, 1),
	'flip: a request that is not');

# --------------------------------------------------------------------------
# time

for (
	[ { do => 'wait', ms => 300 }, 'GET' ],
	[ { do => 'hold', ms => 300 }, 'GET' ],
	[ { do => 'stall', ms => 300 }, 'GET' ],
	[ { do => 'stall', ms => 300, way => 'request' }, 'PUT' ],
	[ { do => 'slow', rate => 300000 }, 'GET' ],
	[ { do => 'slow', rate => 300000, way => 'request' }, 'PUT' ]
) {
	my ($rule, $method) = @$_;
	my $name = "$rule->{do}, $method";

	$r = with($rule, $method, 'x', $method eq 'PUT'
		? (body => $data) : ());

	is($r->{status}, 200, "$name: in the end");
	cmp_ok($r->{took}, '>=', 0.28, "$name: after a while");
}

$rule = $fault->add(do => 'hold', ms => 3600 * 1000);
$r = via('GET', 'x', http => { timeout => 1 });

is("$r->{status} $r->{error}", '0 timeout', 'hold: for long');
ok(wait_for(10, sub { return $fault->stats()->{open} == 0 }),
	'hold: a client that has gone is not waited for');

$fault->clear();

# --------------------------------------------------------------------------
# how a rule selects requests

$rule = $fault->add(do => 'status', match => '^/xet/m', skip => 1,
	count => 1);

is(join(' ', map { via('PUT', $_, body => '1')->{status} } qw/ m n m m /),
	'200 200 500 200', 'rules: a target, the second one, once');

$fault->clear();
$fault->add(do => 'status', op => 'CreateMultipartUpload');

is(via('PUT', 'm', body => '1')->{status}, 200, 'rules: another operation');
is(via('POST', 'm', query => { uploads => '' })->{status}, 500,
	'rules: an operation');

$fault->clear();

ok(!eval { $fault->add(do => 'status', counts => 1); 1 },
	'rules: a word that is none');

# --------------------------------------------------------------------------
# many concurrent requests

$fault->zero();
$fault->add(do => 'wait', ms => 400);

my @connections = map { Test::Xet::HTTP->new($fault->port()) } 1 .. 5;

for (@connections) {
	my $r = $s3->signed('GET', 'x');

	$_->start('GET', $r->{target}, $r->{headers});
}

is(scalar(grep { $_->response('GET')->{status} == 200 } @connections), 5,
	'five at once');

$stats = $fault->stats();

is("$stats->{most_open} $stats->{most_busy} $stats->{busy}", '5 5 0',
	'connections and requests at once');

$_->close() for @connections;
$fault->clear();

# --------------------------------------------------------------------------
# a closed proxy

$fault->close();

ok(!eval { via('GET', 'x'); 1 }, 'closed: nobody is there');

$fault->open();

is(via('GET', 'x')->{status}, 200, 'opened again');

$s3->stop();

is(via('GET', 'x')->{error}, 'no response', 'no store behind it');

$s3->start();

is(via('GET', 'x')->{status}, 200, 'the store is back');

# --------------------------------------------------------------------------
# TLS

my $tls = Test::Xet::S3Fault->new($s3, dir => "$dir/tls", tls => 1);
my $target = $s3->signed('GET', 'x', presign => 60)->{target};

for (
	[ 0, 'trusted', '--cacert', $tls->certificate() ],
	[ 60, 'not trusted' ]
) {
	my ($expected, $name, @args) = @$_;

	my ($status, $out) = run_command([ 'curl', '-sS', '-o',
		"$dir/tls.out", '-H', 'Host: ' . $s3->host(), @args,
		$tls->endpoint() . $target ]);

	is($status >> 8, $expected, "TLS: a certificate that is $name")
		or diag($out);
}

is(Test::Xet::Process::slurp("$dir/tls.out"), $data, 'TLS: the object');

done_testing();
