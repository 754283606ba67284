#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Tests the behavior of the stores of Test::Xet::S3, and prints the table for
# t/README.md.
#
#     perl t/clients/s3_table.pl            all installed stores
#     perl t/clients/s3_table.pl garage     one store

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/../lib";
use MIME::Base64 qw/ encode_base64 /;
use Digest::MD5 qw/ md5 md5_hex /;
use Digest::SHA qw/ sha256 /;
use Test::Xet::HTTP;
use Test::Xet::S3;
use Time::HiRes qw/ time /;

$| = 1;
$SIG{PIPE} = 'IGNORE';

my ($s3, $n);

# CRC-64/NVME of "123456789", the check value of the algorithm

my $digits = '123456789';
my $crc64nvme = 'rosUhgp5mIg=';

my @rows = (
	[ 'ready after, s' => \&ready ],
	[ 'wrong secret: header, URL' => sub {
		return both(get('x', secret => 'f' x 64),
			get('x', secret => 'f' x 64, presign => 60));
	} ],
	[ 'no signature' => sub {
		return said(Test::Xet::HTTP->request($s3->port(), 'GET',
			'/' . $s3->bucket() . '/x', { Host => $s3->host() }));
	} ],
	[ 'bucket in the host name' => sub {
		return said(get('x', vhost => 1));
	} ],
	[ 'wrong region' => sub { said(get('x', region => 'eu-west-1')) } ],
	[ 'clock 1000 s late, early' => sub {
		return both(get('x', time => time() - 1000),
			get('x', time => time() + 1000));
	} ],
	[ 'expired URL' => sub {
		return said(get('x', presign => 60, time => time() - 120));
	} ],
	[ '`x-amz-` header not signed' => sub {
		return said(get('x', loose => [ 'x-amz-meta-a' ],
			headers => { 'x-amz-meta-a' => 1 }));
	} ],
	[ '`Date` in responses' => sub {
		return get('x')->header_value('Date') ? 'yes' : 'no';
	} ],
	[ 'connection kept after 200, 404, 403' => \&kept ],
	[ '`100-continue`: 403 before the body' => \&early ],
	[ 'body is not `x-amz-content-sha256`' => sub {
		return stored(put('data', payload => '0' x 64));
	} ],
	[ 'body truncated at half: object created' => \&half ],
	[ '`UNSIGNED-PAYLOAD` without TLS' => sub {
		return stored(put('data', payload => 'UNSIGNED-PAYLOAD'));
	} ],
	[ 'wrong `Content-MD5`' => sub {
		return stored(put('data', headers => { 'Content-MD5' =>
			encode_base64(md5('other'), '') }));
	} ],
	[ '`x-amz-checksum-sha256`: right, wrong' => sub {
		return checksum('sha256', encode_base64(sha256($digits), ''),
			encode_base64(sha256('other'), ''));
	} ],
	[ '`x-amz-checksum-crc64nvme`: right, wrong' => sub {
		return checksum('crc64nvme', $crc64nvme, 'AAAAAAAAAAE=');
	} ],
	[ 'checksum in the response' => sub {
		my $r = put($digits, headers => {
			'x-amz-checksum-crc64nvme' => $crc64nvme });

		return ($r->header_value('x-amz-checksum-crc64nvme') // '')
			eq $crc64nvme ? 'yes' : 'no';
	} ],
	[ 'ETag is the MD5: object' => sub {
		return (put('data')->header_value('ETag') // '')
			eq '"' . md5_hex('data') . '"' ? 'yes' : 'no';
	} ],
	[ 'PUT by URL, length and crc64nvme signed' => sub {
		return signed_put($digits, $digits);
	} ],
	[ '... other body of the same length' => sub {
		signed_put('987654321', $digits);
	} ],
	[ '... body longer than signed' => sub { signed_put("${digits}0", $digits) } ],
	[ '`If-None-Match: *` on PUT' => sub {
		return exists_put();
	} ],
	[ '`If-None-Match: *` on 8 concurrent PUTs: successes, maximum'
		=> \&won ],
	[ '`If-None-Match: *` on CompleteMultipartUpload' => sub {
		return over(parts([ 'a' x (5 << 20), 'b' ], name => 'x',
			headers => { 'If-None-Match' => '*' }));
	} ],
	[ '`If-None-Match: *` on CopyObject' => sub {
		my $name = name();

		$s3->put($name, 'source');

		return over(copied($s3->request('PUT', 'x', headers => {
			'If-None-Match' => '*',
			'x-amz-copy-source' => $s3->bucket() . "/$name" })));
	} ],
	[ 'CopyObject' => sub {
		my $name = name();
		my $r = $s3->request('PUT', $name, headers => {
			'x-amz-copy-source' => $s3->bucket() . '/x' });

		return said(copied($r)) . ($s3->get($name)->{body}
			eq $s3->get('x')->{body} ? '' : ', another object');
	} ],
	[ '`Range`' => sub {
		return said(get('x', headers => { Range => 'bytes=1-2' }));
	} ],
	[ '`Range` past the end of the object' => sub {
		return said(get('x', headers => { Range => 'bytes=90-99' }));
	} ],
	[ '`Range` with two ranges' => sub {
		my $r = get('x', headers => { Range => 'bytes=0-1,4-5' });

		return said($r) . ($r->{status} != 206
			|| ($r->header_value('Content-Type') // '')
			=~ /multipart/ ? '' : ', one part');
	} ],
	[ 'URL with a signed range: it, another, none' => \&ranges ],
	[ 'first part of 1 KiB' => sub {
		return said(parts([ 'a' x 1024, 'b' ]));
	} ],
	[ 'CompleteMultipartUpload once more' => \&twice ],
	[ 'wrong body of a part' => sub {
		my $name = name();
		my $id = begin($name);

		return said($s3->put($name, 'a', payload => '0' x 64,
			query => { partNumber => 1, uploadId => $id }));
	} ],
	[ 'ListMultipartUploads, with `Initiated`' => \&list_uploads ],
	[ 'AbortMultipartUpload, then UploadPart' => sub {
		my $name = name();
		my $id = begin($name);
		my %part = (query => { partNumber => 1, uploadId => $id });

		$s3->put($name, 'a', %part);

		my $r = $s3->delete($name, query => { uploadId => $id });

		return both($r, $s3->put($name, 'a', %part));
	} ],
	[ 'ListObjectsV2 with `start-after`, `max-keys`' => \&list ],
	[ 'DELETE of nothing' => sub { said($s3->delete(name())) } ],
	[ 'GET in a bucket that does not exist' => sub {
		return said($s3->get('x', bucket => 'none'));
	} ],
	[ 'PUT in a bucket that does not exist' => sub {
		return said($s3->put('x', 'data', bucket => 'none'));
	} ],
	[ 'keys changed while it runs' => sub {
		my $pid = $s3->pid();
		my %old = (key => $s3->key(), secret => $s3->secret());

		$s3->rotate();

		return both(get('x'), get('x', %old))
			. ($s3->pid() == $pid ? '' : ', by a restart');
	} ],
	[ 'objects stay over a kill' => sub {
		$s3->kill();
		$s3->start();

		return get('x')->{status} == 200 ? 'yes' : 'no';
	} ]
);

my @servers = @ARGV ? @ARGV
	: grep { Test::Xet::S3->missing($_) eq '' } Test::Xet::S3->names();

die "no store is installed\n" unless @servers;

my %cells;

for my $server (@servers) {
	column($server);
}

print '| ', join(' | ', '', @servers), " |\n";
print '| ', join(' | ', ('---') x (1 + @servers)), " |\n";

for my $row (@rows) {
	print '| ', join(' | ', $row->[0],
		map { $cells{$_}{$row->[0]} } @servers), " |\n";
}

# --------------------------------------------------------------------------

sub column {
	my ($server) = @_;

	my $started = time();

	$n = 0;
	$s3 = Test::Xet::S3->new(server => $server);
	$s3->{took} = time() - $started;

	for my $row (@rows) {
		my ($name, $ask) = @$row;

		again();

		my $cell = eval { $ask->() };

		$cell = 'fails: ' . ($@ =~ s/[\r\n|]+/ /gr) unless defined $cell;
		$cells{$server}{$name} = substr($cell, 0, 60);
	}

	undef $s3;
}

# Restores object x, which the previous row may have changed.

sub again {
	my $r = get('x');

	return if $r->{status} == 200 && $r->{body} eq 'content';

	$s3->put('x', 'content');
}

sub ready {
	return sprintf('%.1f', $s3->{took});
}

sub name {
	return 'n' . ++$n;
}

sub get {
	return $s3->get(@_);
}

# Uploads a new object, and remembers its name for stored().

sub put {
	my ($data, %o) = @_;

	my $name = name();
	my $r = $s3->put($name, $data, %o);

	$r->{name} = $name;

	return $r;
}

sub said {
	my ($r) = @_;

	my $code = Test::Xet::S3::code($r);

	return ($r->{status} || $r->{error}) . ($code ne '' ? " $code" : '');
}

sub both {
	return same(map { said($_) } @_);
}

sub same {
	my %cells = map { $_ => 1 } @_;

	return keys %cells == 1 ? "$_[0], all" : join(', ', @_);
}

# Checks whether a refused upload was stored anyway.

sub stored {
	my ($r) = @_;

	my $there = $s3->get($r->{name})->{status} == 200;
	my $good = $r->{status} == 200;

	return said($r) . ($there == $good ? ''
		: $there ? ', but stored' : ', but not there');
}

sub over {
	my ($r) = @_;

	return said($r) . ($s3->get('x')->{body} eq 'content' ? ''
		: ', replaced');
}

sub exists_put {
	return over($s3->put('x', 'other',
		headers => { 'If-None-Match' => '*' }));
}

# Returns the maximum result of ten calls of race(), because a single race may
# not show a fault.

sub won {
	my $most = 0;

	for (1 .. 10) {
		my $won = race();

		$most = $won if $won > $most;
	}

	return $most;
}

sub race {
	my $name = name();
	my @connections = map { Test::Xet::HTTP->new($s3->port()) } 1 .. 8;

	for my $i (0 .. 7) {
		my $r = $s3->signed('PUT', $name, body => "data $i",
			headers => { 'If-None-Match' => '*' });

		$connections[$i]->start('PUT', $r->{target},
			{ %{ $r->{headers} }, 'Content-Length' => 6 });
	}

	$connections[$_]->send("data $_") for 0 .. 7;

	return scalar grep { $_->response('PUT')->{status} == 200 }
		@connections;
}

sub checksum {
	my ($name, $right, $wrong) = @_;

	return join(', ', map { stored(put($digits,
		headers => { "x-amz-checksum-$name" => $_ })) }
		$right, $wrong);
}

# Signs a URL for the body $said, and sends the body $sent to this URL.

sub signed_put {
	my ($sent, $said) = @_;

	my $name = name();
	my %headers = ('Content-Length' => length($said),
		'x-amz-checksum-crc64nvme' => $crc64nvme);
	my $r = $s3->signed('PUT', $name, presign => 60, headers => \%headers);

	$r = Test::Xet::HTTP->request($s3->port(), 'PUT', $r->{target},
		{ %{ $r->{headers} }, 'Content-Length' => length($sent) },
		$sent);
	$r->{name} = $name;

	return stored($r);
}

sub ranges {
	my $url = $s3->signed('GET', 'x', presign => 60,
		headers => { Range => 'bytes=1-2' });

	return both(map { Test::Xet::HTTP->request($s3->port(), 'GET',
		$url->{target}, { Host => $s3->host(), Range => $_ }) }
		'bytes=1-2', 'bytes=1-3', undef);
}

sub kept {
	my @kept;

	for ([ 200, 'x' ], [ 404, 'none' ],
		[ 403, 'x', secret => 'f' x 64 ])
	{
		my ($status, $name, %o) = @$_;

		my $c = Test::Xet::HTTP->new($s3->port());
		my $r = $s3->signed('GET', $name, %o);

		$c->exchange('GET', $r->{target}, $r->{headers});
		push @kept, eval { $c->exchange('GET', $r->{target},
			$r->{headers})->{status} == $status } ? 'yes' : 'no';
	}

	return same(@kept);
}

sub early {
	my $r = $s3->signed('PUT', name(), body => 'x' x 9,
		secret => 'f' x 64);
	my $c = Test::Xet::HTTP->new($s3->port());

	$c->start('PUT', $r->{target}, { %{ $r->{headers} },
		'Content-Length' => 9, Expect => '100-continue' });

	return $c->response('PUT', interim => 1, timeout => 3)->{status}
		== 100 ? 'no' : 'yes';
}

sub begin {
	my ($name) = @_;

	return Test::Xet::S3::text($s3->must('POST', $name,
		query => { uploads => '' })->{body}, 'UploadId');
}

# Sends a multipart upload.  Returns the response to its completion.

sub parts {
	my ($parts, %o) = @_;

	my $name = $o{name} // name();
	my $id = begin($name);
	my $xml = '';

	for my $i (1 .. @$parts) {
		my $r = $s3->must('PUT', $name, body => $parts->[$i - 1],
			query => { partNumber => $i, uploadId => $id });

		$xml .= "<Part><PartNumber>$i</PartNumber><ETag>"
			. $r->header_value('ETag') . '</ETag></Part>';
	}

	my @complete = ('POST', $name, query => { uploadId => $id },
		headers => $o{headers} || {}, body =>
		"<CompleteMultipartUpload>$xml</CompleteMultipartUpload>");

	$s3->request(@complete) if $o{twice};

	return copied($s3->request(@complete));
}

# Completes an upload twice, like a client that did not get the first response.

sub twice {
	return said(parts([ 'a' x (5 << 20), 'b' ], twice => 1));
}

# Sends only half of the body.  The body is not signed, so the store can only
# check its length.

sub half {
	my $name = name();
	my $r = $s3->signed('PUT', $name, payload => 'UNSIGNED-PAYLOAD');
	my $c = Test::Xet::HTTP->new($s3->port());

	$c->start('PUT', $r->{target}, { %{ $r->{headers} },
		'Content-Length' => 200000 });
	$c->send('x' x 100000);
	$c->close();
	sleep(1);

	return $s3->get($name)->{status} == 200 ? 'yes' : 'no';
}

# The body of a response with status 200 may have an error.

sub copied {
	my ($r) = @_;

	$r->{status} .= ' with' if $r->{status} == 200
		&& Test::Xet::S3::code($r) ne '';

	return $r;
}

sub list_uploads {
	my $id = begin('listed/upload');
	my $r = $s3->get('', query => { uploads => '', prefix => 'listed/' });

	return said($r) if $r->{status} != 200;

	return !grep({ $_->{id} eq $id } $s3->uploads('listed/')) ? 'no'
		: Test::Xet::S3::text($r->{body}, 'Initiated') eq ''
		? 'without' : 'yes';
}

sub list {
	$s3->put("list/$_", 'data') for 'a' .. 'e';

	my $xml = $s3->must('GET', '', query => { 'list-type' => 2,
		prefix => 'list/', 'start-after' => 'list/b',
		'max-keys' => 2 })->{body};
	my $names = join(' ', $xml =~ m!<Key>([^<]*)</Key>!g);

	return $names ne 'list/c list/d' ? "no: $names"
		: Test::Xet::S3::text($xml, 'IsTruncated') eq 'true' ? 'yes'
		: 'yes, without IsTruncated';
}
