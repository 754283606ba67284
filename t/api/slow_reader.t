#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Clients that read a response slowly, through a socket buffer that is full
# right away: on every route the response arrives complete.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Hub;

use Socket qw/ AF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF IPPROTO_TCP
	pack_sockaddr_in inet_aton /;
use Time::HiRes qw/ sleep /;

my $t = Test::Xet->new(server => 'listen 127.0.0.1:%%PORT_8081%% sndbuf=2k;');

$t->run();

# a plan that fits into one buffer, and a plan that a thread makes in several
# buffers

my @files = map { Test::Xet::Hub::multi_file({ t => $t },
	size => 2 * $_ * 3000, chunk => 3000, step => 2) } 240, 600;
my ($one, $several) = map { $_->{hash} } @files;

# Reads the response in small amounts.

sub slowly {
	my ($uri, @headers) = @_;

	return sips(join("\r\n", "GET $uri HTTP/1.1", 'Host: localhost',
		'Connection: close', @headers, '', ''));
}

sub sips {
	my ($requests) = @_;

	socket(my $s, AF_INET, SOCK_STREAM, IPPROTO_TCP) or die "socket: $!\n";
	setsockopt($s, SOL_SOCKET, SO_RCVBUF, 2048);
	connect($s, pack_sockaddr_in($t->port(8081), inet_aton('127.0.0.1')))
		or die "connect: $!\n";

	syswrite($s, $requests) == length($requests) or die "write: $!\n";

	sleep(0.3);

	my $text = '';

	local $SIG{ALRM} = sub { die "no more after "
		. length($text) . " bytes\n" };

	alarm(60);
	eval { 1 while sysread($s, $text, 16384, length($text)) };
	alarm(0);
	diag($@) if $@;

	return $text;
}

sub same {
	my ($name, $uri, @headers) = @_;

	my $want = $t->get($uri, { map { split(/: /, $_, 2) } @headers });
	my ($head, $body) = split(/\r\n\r\n/, slowly($uri, @headers), 2);

	if ($head =~ /^Transfer-Encoding: chunked/mi) {
		my $chunked = $body;
		$body = '';

		while ($chunked =~ s/\A([0-9a-f]+)\r\n//i) {
			$body .= substr($chunked, 0, hex($1), '');
			substr($chunked, 0, 2, '');
		}
	}

	# expiry, signature and host of URLs differ, and boundaries are random

	for ($want->{body}, $body) {
		s/[?&]e=\d+[^"]*//g;
		s/127\.0\.0\.1:\d+|localhost(?::\d+)?/host/g;
		s/^--[0-9a-f]{32}/--boundary/mg;
	}

	my ($status) = $head =~ /\AHTTP\/1.1 (\d+)/;

	cmp_ok(length($want->{body}), '>', 20000, "$name: a large response");
	is($status, $want->{status}, "$name: status");
	ok($body eq $want->{body}, "$name: the complete response");
}

for my $file ([ 'one piece', $one ], [ 'several', $several ]) {
	my ($name, $hash) = @$file;

	same("reconstruction v1, $name", "/api/v1/reconstructions/$hash");
	same("reconstruction v2, $name", "/api/v2/reconstructions/$hash");
	same("batch, $name", "/api/v1/reconstructions?file_id=$hash");
	same("file, $name", "/api/v1/files/$hash");
	same("ranges of a file, $name", "/api/v1/files/$hash",
		'Range: bytes=100-40000,50000-90000');
}

my ($xorb) = $t->sql("SELECT encode(hash, 'hex') FROM xet.xorbs LIMIT 1");
my ($chunk) = $t->sql("SELECT encode(hash, 'hex') FROM xet.chunks LIMIT 1");

$_ = join('', map { scalar reverse($_) =~ s/(.)(.)/$2$1/gr }
	unpack('(a16)4', $_)) for $xorb, $chunk;

same('xorb', "/api/v1/xorbs/default/$xorb", 'Range: bytes=0-100000');
same('dedup', "/api/v1/chunks/default-merkledb/$chunk");

# Pipelined requests on one connection, whose responses the client does not read
# at first: the socket buffer becomes full during a response without a body.

my @small = map { $t->put('/api/v1/files', "file $_")->json()->{hash} } 1 .. 60;
my $answers = sips(join('', map { "DELETE /api/v1/files/$_ HTTP/1.1\r\n"
	. "Host: localhost\r\n"
	. ($_ eq $small[-1] ? "Connection: close\r\n" : '') . "\r\n" } @small));

is(() = $answers =~ m!^HTTP/1\.1 204 !mg, @small, 'DELETE: all get a response');

$t->done();
