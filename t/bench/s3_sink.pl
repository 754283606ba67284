#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# An object store that uses almost no CPU time: it keeps the bytes of small
# objects, but only the length of large objects and of parts.  It does not
# verify signatures.  Its only purpose is to measure the cost of its client.
#
#     s3_sink.pl PORT [KEPT]
#
# Objects of at most KEPT bytes are small; the default is 65536.

use warnings;
use strict;

use IO::Select;
use IO::Socket::INET;
use POSIX qw/ strftime /;

my $keep = $ARGV[1] // 65536;
my $head = 65536;
my $piece = 1 << 20;

my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64,
	LocalPort => $ARGV[0], ReuseAddr => 1) or die "listen: $@\n";
my $select = IO::Select->new($listen);
my (%state, %objects, %uploads);
my $ids = 0;

$SIG{PIPE} = 'IGNORE';

while (1) {
	for my $c ($select->can_read()) {
		if ($c == $listen) {
			my $new = $listen->accept() or next;

			$select->add($new);
			$state{$new} = { in => '', left => 0 };
			next;
		}

		next if take($c, $state{$c});

		delete $state{$c};
		$select->remove($c);
		close($c);
	}
}

# Reads and handles a request; returns 0 at the end of the connection.

sub take {
	my ($c, $s) = @_;

	if ($s->{left}) {
		my $n = sysread($c, my $rest, $s->{left} < $piece
			? $s->{left} : $piece) or return 0;

		$s->{body} .= $rest if $s->{length} <= $keep;
		$s->{left} -= $n;

	} else {
		sysread($c, $s->{in}, $head, length($s->{in})) or return 0;

		my $end = index($s->{in}, "\r\n\r\n");

		return length($s->{in}) < $head if $end == -1;

		my $text = substr($s->{in}, 0, $end + 4, '');

		@$s{qw/ method target /} = $text =~ /^(\S+) (\S+)/;
		$s->{length} = $text =~ /^content-length: (\d+)/mi ? $1 : 0;
		($s->{range}) = $text =~ /^range: bytes=(\d+-\d+)/mi;
		$s->{body} = $s->{length} <= $keep ? $s->{in} : '';
		$s->{left} = $s->{length} - length($s->{in});
		$s->{in} = '';
	}

	return $s->{left} || answer($c, $s);
}

sub answer {
	my ($c, $s) = @_;

	my ($path, $args) = split(/\?/, $s->{target}, 2);
	my ($status, $body, %more) = handle($s, $path, $args // '');
	my $length = $more{length} // length($body);
	my $head = "HTTP/1.1 $status\r\nContent-Length: $length\r\n"
		. ($more{range} ? "Content-Range: $more{range}\r\n" : '')
		. 'Date: ' . strftime('%a, %d %b %Y %T GMT', gmtime())
		. "\r\nETag: \"0123456789abcdef0123456789abcdef\"\r\n\r\n";

	$head .= $body if $s->{method} ne 'HEAD';

	for (my $sent = 0; $sent < length($head);) {
		$sent += syswrite($c, $head, $piece, $sent) // return 0;
	}

	return 1;
}

sub handle {
	my ($s, $path, $args) = @_;

	my $o = $objects{$path};

	if ($s->{method} eq 'PUT') {
		if ($args =~ /uploadId=(\w+)/) {
			$uploads{$1} += $s->{length};

		} else {
			$objects{$path} = { size => $s->{length},
				body => $s->{body} };
		}

		return ('200 OK', '');
	}

	if ($s->{method} eq 'POST' && $args =~ /uploadId=(\w+)/) {
		$objects{$path} = { size => delete $uploads{$1} // 0 };

		return ('200 OK', '<CompleteMultipartUploadResult><ETag>'
			. '"0"</ETag></CompleteMultipartUploadResult>');
	}

	if ($s->{method} eq 'POST') {
		return ('200 OK', '<InitiateMultipartUploadResult><UploadId>u'
			. ++$ids . '</UploadId>'
			. '</InitiateMultipartUploadResult>');
	}

	if ($s->{method} eq 'DELETE') {
		delete $objects{$path};
		return ('204 No Content', '');
	}

	# lists are always empty

	return ('200 OK', $args =~ /(?:^|&)uploads/
		? '<ListMultipartUploadsResult><IsTruncated>false'
			. '</IsTruncated></ListMultipartUploadsResult>'
		: '<ListBucketResult><IsTruncated>false</IsTruncated>'
			. '</ListBucketResult>',
		$s->{method} eq 'HEAD' ? (length => 0) : ())
		if $path =~ m!^/[^/]+/?$!;
	return ('404 Not Found', '<Error><Code>NoSuchKey</Code></Error>')
		unless $o;
	return ('200 OK', '', length => $o->{size})
		if $s->{method} eq 'HEAD';
	return ('501 Not Implemented', '') unless defined $o->{body}
		&& length($o->{body}) == $o->{size};
	return ('200 OK', $o->{body}) unless $s->{range};

	my ($first, $last) = split(/-/, $s->{range});

	$last = $o->{size} - 1 if $last >= $o->{size};

	return ('206 Partial Content', substr($o->{body}, $first,
		$last - $first + 1), range => "bytes $first-$last/$o->{size}");
}
