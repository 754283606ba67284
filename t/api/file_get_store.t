#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# GET of files under faults: damage in the store and in the database, clients
# that disconnect or read slowly, PostgreSQL down.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ run_command slurp spew /;

use Digest::SHA ();
use Errno qw/ ECONNRESET /;
use IO::Socket::INET;
use Socket qw/ SOL_SOCKET SO_RCVBUF inet_aton pack_sockaddr_in /;

my $t = Test::Xet->new(workers => 1, timeout => 600,
	http => 'gzip on; gzip_types *; gzip_http_version 1.0;');

$t->run();

sub uri { return "/api/v1/files/$_[0]->{hash}" }

sub copy {
	my ($xorb) = @_;

	return $t->copy($xorb->{hash});
}

# --------------------------------------------------------------------------
# damage: a file of two xorbs, of which the second one is damaged in some way

my $good = send_xorb($t, mix(1, 1_000_000), sizes => [ 100000 ]);
my $hurt = send_xorb($t, mix(2, 1_000_000), sizes => [ 100000 ]);
my $file = register_file($t, [ [ $good ], [ $hurt ] ]);

my $bytes = $t->copy_bytes(copy($hurt));
my @chunks = @{ $hurt->{chunks} };

sub flip {
	my ($at) = @_;

	my $copy = $bytes;
	substr($copy, $at, 1) = chr(ord(substr($copy, $at, 1)) ^ 0x10);

	return $copy;
}

# Checks that the response ends before the damaged chunk, and that a log line
# names that chunk.

sub cut_ok {
	my ($chunk, $reason, $name) = @_;

	my $before = $t->log_size();
	my $r = $t->get(uri($file));
	my $limit = length($good->{raw}) + $chunks[$chunk]{raw_start};

	is($r->{status}, 200, "$name: begins");
	ok($r->{error} && length($r->{body}) <= $limit,
		"$name: the connection is cut")
		or diag(length($r->{body}), ' ', $r->{error} // '');
	ok($r->{body} eq substr($file->{data}, 0, length($r->{body})),
		"$name: no wrong byte");
	cmp_ok(length($r->{body}), '>=', length($good->{raw}) / 2,
		"$name: the bytes before it are sent");

	my $log = substr($t->log(), $before);

	my $line = "xet: chunk $chunk of xorb $hurt->{hash}\\S* can't be read: "
		. $reason;

	like($log, qr/\[alert\].*$line/, "$name: an alert");
	like($log, qr/\[error\].*a file was truncated .*$file->{hash}/,
		"$name: an error about the file");

	# chunks of the same copy that are not damaged are served

	my $first = length($good->{raw});

	part_ok($t->get(uri($file), { Range => "bytes=0-" . ($limit - 1) }),
		$file, 0, $limit - 1, "$name: the bytes before it")
		if $chunk;
	part_ok($t->get(uri($file), { Range => 'bytes=10-20' }), $file, 10,
		20, "$name: elsewhere");

	# if nothing was sent yet, the request gets an error response

	$r = $t->get(uri($file), { Range => "bytes=$limit-$limit" });

	is_deeply([ $r->{status}, $r->json()->{error}{code},
		scalar $r->header_value('Retry-After') ],
		[ 500, 'storage_error', 5 ], "$name: 500");
	is(join(' ', grep { defined } map { $r->header_value($_) }
		qw/ ETag Cache-Control Content-Range Accept-Ranges /),
		'no-store', "$name: no headers of the file");
}

$t->allow(qr/xet: chunk \d+ of xorb $hurt->{hash}\S* can't be read/);

for (
	[ 'a bit of the data', 4, flip($chunks[4]{stored_start} + 5000),
		'the chunk does not match its hash|.*decompress.*' ],
	[ 'the version', 0, flip(0), '.*version.*' ],
	[ 'the stored length', 7, flip($chunks[7]{stored_start} + 2), '.*' ],
	[ 'the scheme', 7, flip($chunks[7]{stored_start} + 4),
		'.*scheme.*' ],
	[ 'the raw length', 9, flip($chunks[9]{stored_start} + 6), '.*' ],
	[ 'its last byte', 9, flip(length($bytes) - 1), '.*' ],
	[ 'a byte is missing', 9, substr($bytes, 0, -1),
		'its file is truncated' ],
	[ 'half is missing', 5, substr($bytes, 0,
		$chunks[5]{stored_start} + 3), 'its file is truncated' ],
	[ 'nothing in it', 0, '', 'its file is truncated' ]
) {
	my ($name, $chunk, $content, $reason) = @$_;

	$t->put_copy(copy($hurt), $content);
	cut_ok($chunk, $reason, $name);
}

# pipelined requests: the response before the damaged one arrives complete,
# although nginx has not read all requests when it closes the connection.  nginx
# does not reset the connection.

my $before = register_file($t, [ [ $good ] ]);

$t->put_copy(copy($hurt), flip($chunks[4]{stored_start} + 5000));

for my $rest (0, 20) {
	my @out = line_of($before, $file, ($before) x $rest);
	my $name = "in a line, $rest behind it";

	is($out[0]{status}, 200, "$name: the response before");
	ok($out[0]{body} eq $before->{data}, "$name: is complete");
	is($out[1]{status}, 200, "$name: the damaged one begins");
	ok($out[1]{cut} && $out[1]{body}
		eq substr($file->{data}, 0, length($out[1]{body})),
		"$name: is truncated");
	cmp_ok(length($out[1]{body}), '>=', length($good->{raw}) / 2,
		"$name: the sent bytes arrive");
	is(scalar @out, 2, "$name: no response after it");
	is($out[1]{errno}, 0, "$name: no reset");
}

# if only the end of the connection marks the end of the response, nginx resets
# the connection

{
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
		PeerPort => $t->port()) or die $!;
	my $in = '';

	print $socket 'GET ' . uri($file) . " HTTP/1.0\r\n"
		. "Host: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
	$socket->flush();

	1 while $socket->sysread($in, 65536, length($in));

	my $errno = $! + 0;

	like($in, qr!^HTTP/1\.1 200 .*^Content-Encoding: gzip\r\n!ms,
		'HTTP/1.0, gzip');
	unlike($in, qr/^(?:Content-Length|Transfer-Encoding):/mi,
		'no length, no chunks');
	is($errno, ECONNRESET, 'HTTP/1.0: reset');
}

# Sends requests for files in one write and reads slowly through a small
# window.

sub line_of {
	my $socket = IO::Socket::INET->new(Proto => 'tcp') or die $!;

	$socket->setsockopt(SOL_SOCKET, SO_RCVBUF, 16384) or die $!;
	$socket->connect(pack_sockaddr_in($t->port(), inet_aton('127.0.0.1')))
		or die "connect: $!\n";

	my $rest = " HTTP/1.1\r\nHost: localhost\r\nX-Filler: " . 'x' x 500
		. "\r\n\r\n";

	print $socket map { 'GET ' . uri($_) . $rest } @_;
	$socket->flush();

	select(undef, undef, undef, 0.5);

	my ($in, $errno) = ('', 0);

	while (1) {
		my $n = $socket->sysread($in, 65536, length($in));

		$errno = $! + 0 unless defined $n;
		last unless $n;

		select(undef, undef, undef, 0.002);
	}

	my @out;

	while ($in =~ s!^HTTP/1\.1 (\d+) (.*?)\r\n\r\n!!s) {
		my ($status, $headers) = ($1, $2);
		my ($length) = $headers =~ /^Content-Length: (\d+)/mi;
		my $body = substr($in, 0, $length, '');

		push @out, { status => $status, body => $body, errno => $errno,
			cut => length($body) < $length };
	}

	return @out;
}

$t->remove_copy(copy($hurt));
cut_ok(0, q{its file can't be opened \(2: No such file}, 'no file');

# an upload repairs the damaged copy

is($t->http('POST', "/api/v1/xorbs/default/$hurt->{hash}", {}, \$bytes)
	->{status}, 200, 'sent again');
ok($t->get(uri($file))->{body} eq $file->{data}, 'healed');

# a chunk of another xorb in place of the right chunk has another hash

$t->put_copy(copy($hurt), $t->copy_bytes(copy($good)));
is($t->get(uri($file), { Range => 'bytes=-1' })->{status}, 500,
	'another xorb');
$t->put_copy(copy($hurt), $bytes);

SKIP: {
	skip 'the workers are root', 1
		unless !$t->s3() && Test::Xet::Nginx::user();

	my $path = $t->store() . "/" . copy($hurt);

	chmod(0, $path);
	$t->allow(qr/xet: xorb $hurt->{hash}\S*: its file can't be opened/);
	is($t->get(uri($file), { Range => 'bytes=-1' })->{status}, 500,
		'a file that may not be read');
	chmod(0644, $path);
}

# a damaged copy counts as unknown until it is uploaded again, and as known
# right after that

is_deeply([ map { $_->{status} } $t->head("/api/v1/xorbs/default/$_->{hash}") ],
	[ $_ == $hurt ? 404 : 200 ], 'HEAD') for $good, $hurt;
is($t->http('POST', "/api/v1/xorbs/default/$hurt->{hash}", {}, \$bytes)
	->{status}, 200, 'sent again');
is($t->head("/api/v1/xorbs/default/$hurt->{hash}")->{status}, 200,
	'the xorb is known');

# --------------------------------------------------------------------------
# damage in the database: the module sends an error response, and no bytes

sub row {
	my ($hash) = @_;

	return "WHERE hash = '\\x" . join('', map { reverse(/../g) }
		$hash =~ /.{16}/g) . "'";
}

for (
	[ 'xorbs', 'raw_ends', $hurt, 9, '1250000-1250001' ],
	[ 'xorbs', 'raw_ends', $hurt, 37, '0-' ],
	[ 'xorbs', 'stored_ends', $hurt, 37, '1900000-' ],
	[ 'xorbs', 'chunk_hashes', $hurt, 37, '1100000-1100001' ],
	[ 'files', 'packed', $file, 44, '0-' ],
	[ 'files', 'packed', $file, 52 + 33, '1900000-' ],
	[ 'files', 'packed', $file, 52 + 34, '1900000-' ],
	[ 'files', 'packed', $file, 52 + 37, '1900000-' ]
) {
	my ($table, $column, $what, $byte, $range) = @$_;
	my $row = row($what->{hash});
	my $was = $t->sql("SELECT encode($column, 'hex') FROM xet.$table $row");

	$t->sql("UPDATE xet.$table SET $column = set_byte($column, $byte,"
		. " get_byte($column, $byte) # 8) $row");
	is($t->get(uri($file), { Range => "bytes=$range" })->{status}, 500,
		"damaged: $column, byte $byte");
	$t->sql("UPDATE xet.$table SET $column = decode('$was', 'hex') $row");
}

ok($t->get(uri($file))->{body} eq $file->{data}, 'the file is readable again');

is($t->http('POST', "/api/v1/xorbs/default/$hurt->{hash}", {}, \$bytes)
	->{status}, 200, 'sent again, to clear the damage');

# --------------------------------------------------------------------------
# a large file: 700 terms, 70 MB

my @terms = map { [ $good, $_ % 9, $_ % 9 + 1 ], [ $hurt, $_ % 3, $_ % 3 + 1 ] }
	0 .. 349;
my $large = register_file($t, \@terms);

is($large->{size}, 70_000_000, 'a large file');
ok($t->get(uri($large), {}, timeout => 60)->{body} eq $large->{data},
	'its bytes');

# 3000 terms, 300 MB: the memory is the same as for the previous file

{
	my @again = map { $_ % 2 ? [ $good, $_ % 9, $_ % 9 + 1 ]
		: [ $hurt, $_ % 10, $_ % 10 + 1 ] } 1 .. 3000;
	my $huge = register_file($t, \@again, data => 0);
	my $sha = Digest::SHA->new(256);

	$sha->add(substr($_->[0]{raw}, $_->[1] * 100000, 100000)) for @again;

	is($huge->{size}, 300_000_000, '300 MB');

	my $rss = $t->rss();
	my ($status, $sum) = run_command([ 'sh', '-c',
		'curl -sS --fail "$0" | sha256sum', $t->url(uri($huge)) ],
		timeout => 120);

	is($sum, $sha->hexdigest() . "  -\n", 'its bytes');
	cmp_ok($t->rss() - $rss, '<', 4096, 'memory does not grow');
}

# --------------------------------------------------------------------------
# clients that disconnect immediately, in the first buffer, in the middle, or
# after the last byte

$t->fds_mark();

for my $i (1 .. 60) {
	my $c = $t->http_start('GET', uri($large), {}, undef,
		rcvbuf => 16384);

	$c->read_some($i < 10 ? 0 : 1 << ($i / 3)) if $i > 5;
	$i % 2 ? $c->abort() : $c->close();
}

ok($t->get(uri($file))->{body} eq $file->{data}, 'other requests work');

# --------------------------------------------------------------------------
# slow readers: the memory for each reader does not depend on the size of the
# file

my $pid = ($t->worker_pids())[0];
my $rss = $t->rss($pid);
my @slow;

for (1 .. 50) {
	my $c = $t->http_start('GET', uri($large), {}, undef,
		rcvbuf => 4096, timeout => 60);

	push @slow, $c;
}

# each reader stops at another offset; then the server has time to read ahead

$slow[$_]->read_some(1000 + $_ * 500, 5) for 0 .. 49;
sleep(1);

my $grown = $t->rss($pid) - $rss;

# Memory in KiB: two buffers of 256 KiB, or of 2 MiB if each read costs a round
# trip; 62 KiB that nginx allocates for a request; and the decoders of the
# threads.

my ($two, $threads) = $t->s3() ? (4096, 12 * 1024) : (512, 4 * 1024);

cmp_ok($grown, '<', 50 * ($two + 128) + $threads, '50 slow readers: memory')
	or diag("$grown KiB");

ok($t->get(uri($file))->{body} eq $file->{data}, 'other requests work');

# old workers finish the requests that they have begun

$t->reload();

my $r = $t->get(uri($file));
ok($r->{body} eq $file->{data}, 'the new workers respond');

$_->abort() for @slow;

my $c = $t->http_start('GET', uri($large), {}, undef, rcvbuf => 65536,
	timeout => 60);

$c->{buffer} = $c->read_some(100_000, 5);
$t->reload();
$r = $c->response('GET', timeout => 60);
ok($r->{body} eq $large->{data} && !$r->{error}, 'across a reload');
$c->close();

# --------------------------------------------------------------------------
# PostgreSQL is down: the server returns 503, and files in transfer end early

$c = $t->http_start('GET', uri($large), {}, undef, rcvbuf => 65536,
	timeout => 60);
$c->{buffer} = $c->read_some(100_000, 5);

$t->pg_stop();

for my $method (qw/ GET HEAD /) {
	$r = $t->http($method, uri($file), {}, undef);
	is($r->{status}, 503, "PostgreSQL away: $method");
	ok($r->header_value('Retry-After'), 'Retry-After');
	is($r->json()->{error}{code}, 'database_unavailable', 'code')
		if $method eq 'GET';
}

is($t->get("/api/v1/files/" . '0' x 64)->{status}, 200,
	'the empty file needs no database');

$r = $c->response('GET', timeout => 60);

is($r->{status}, 200, 'a response that had begun');
isnt($r->{error} // 'timeout', 'timeout', 'is truncated')
	or diag(length($r->{body}));
ok($r->{body} eq substr($large->{data}, 0, length($r->{body})),
	'no wrong byte');
$c->close();

$t->pg_start();

ok(wait_for(20, sub { $t->get(uri($file))->{status} == 200 }),
	'PostgreSQL is back');

$t->done();
