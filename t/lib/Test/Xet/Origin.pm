package Test::Xet::Origin;

# Copyright (C) the ngx_http_xet_module authors

# Runs a fake origin, which records all requests, complete or truncated.
#
#     my $origin = Test::Xet::Origin->new($port, rate => 1 << 20);
#     ...
#     my $seen = $origin->seen(1);
#     is($seen->{sha256}, ...);
#
# Options:
#
#     rate    maximum number of body bytes to read per second
#     early   status of a response that it sends directly after the head
#     hangup  number of body bytes after which it closes the connection
#
# The record of a request, written when the request's connection has ended:
#
#     head, method, uri  the head as received, and parts of its first line
#     length             Content-Length, undef for a chunked body
#     received           bytes of the body, without framing
#     sha256             of these bytes
#     complete           whether the body was complete
#
# A complete request gets 200 and {"was_inserted":true}.  A connection serves
# one request.

use warnings;
use strict;

use parent qw/ Test::Xet::Program /;

use Digest::SHA ();
use IO::Socket::INET;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw/ sleep /;

use Test::Xet::Process qw/ root slurp spawn wait_for /;

my $step = 65536;

sub new {
	my ($class, $port, %o) = @_;

	my $file = delete $o{file} or die "no file to tell in\n";
	my $self = bless { file => $file, port => $port, told => 0,
		new => [] }, $class;

	$self->{pid} = spawn([ $^X, '-I', root() . '/t/lib',
		'-MTest::Xet::Origin', '-e',
		'Test::Xet::Origin::serve(@ARGV)', $port, $file, %o ],
		output => "$file.log");

	wait_for(10, sub {
		return IO::Socket::INET->new(PeerAddr => '127.0.0.1',
			PeerPort => $port);
	}) or die "no origin\n";

	return $self;
}

# Waits for the next complete or truncated request and returns its record; undef
# if there is none within five seconds.

sub seen {
	my ($self, $complete) = @_;

	my $found;

	wait_for(5, sub {
		push @{ $self->{new} }, $self->fresh();

		for my $i (0 .. $#{ $self->{new} }) {
			next if $self->{new}[$i]{complete} != $complete;

			$found = splice(@{ $self->{new} }, $i, 1);
			return 1;
		}

		return 0;
	});

	return $found;
}

# Returns all records that no earlier call has returned.

sub rest {
	my ($self) = @_;

	return splice(@{ $self->{new} }), $self->fresh();
}

sub fresh {
	my ($self) = @_;

	# a line may be incomplete while it is written

	my @lines = (slurp($self->{file}, 1) // '') =~ /^(.*)\n/mg;
	my @new = splice(@lines, $self->{told});

	$self->{told} += @new;

	return map { JSON::PP::decode_json($_) } @new;
}

# --------------------------------------------------------------------------
# the process of the origin

sub serve {
	my ($port, $file, %o) = @_;

	my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1',
		LocalPort => $port, Listen => 64, ReuseAddr => 1)
		or die "port $port: $@\n";

	$SIG{CHLD} = 'IGNORE';
	$SIG{PIPE} = 'IGNORE';

	while (1) {
		my $client = $server->accept() or next;

		my $pid = fork() // die "fork() failed: $!\n";
		next if $pid;

		close($server);

		my $seen = exchange($client, %o);

		record($file, $seen) if $seen;
		POSIX::_exit(0);
	}
}

sub record {
	my ($file, $seen) = @_;

	open(my $fh, '>>', $file) or die "$file: $!\n";
	syswrite($fh, JSON::PP->new->canonical->encode($seen) . "\n");
	close($fh);
}

# Serves a connection; writes no record if the client sends no request.

sub exchange {
	my ($client, %o) = @_;

	my $self = { client => $client, buffer => '', rate => $o{rate} };

	1 while $self->{buffer} !~ /\r\n\r\n/ && fill($self);

	$self->{buffer} =~ s/\A(.*?\r\n)\r\n//s or return undef;

	my $head = $1;
	my ($method, $uri) = split(/ /, $head);
	my ($length) = $head =~ /^Content-Length: (\d+)\r$/mi;
	my $chunked = $head =~ /^Transfer-Encoding: chunked\r$/mi;

	$self->{left} = $o{hangup};
	$self->{sha} = Digest::SHA->new(256);
	$self->{received} = 0;

	answer($client, $o{early}) if $o{early};

	my $complete = $chunked ? chunks($self) : take($self, $length // 0);

	answer($client, 200) if $complete && !$o{early};
	close($client);

	return { head => $head, method => $method, uri => $uri,
		length => $length, received => $self->{received},
		sha256 => $self->{sha}->hexdigest(),
		complete => $complete ? 1 : 0 };
}

sub answer {
	my ($client, $status) = @_;

	my $body = $status == 200 ? '{"was_inserted":true}'
		: '{"error":{"code":"of_the_origin","message":"no"}}';

	syswrite($client, "HTTP/1.1 $status Status\r\n"
		. "Content-Type: application/json\r\nContent-Length: "
		. length($body) . "\r\nConnection: close\r\n\r\n$body");
}

sub fill {
	my ($self) = @_;

	my $n = sysread($self->{client}, $self->{buffer}, $step,
		length($self->{buffer}));

	sleep($n / $self->{rate}) if $n && $self->{rate};

	return $n;
}

# Reads n bytes of a body; returns whether all of them were received.

sub take {
	my ($self, $n) = @_;

	while ($n) {
		return 0 if $self->{buffer} eq '' && !fill($self);

		my $part = substr($self->{buffer}, 0, $n, '');

		$self->{sha}->add($part);
		$self->{received} += length($part);
		$n -= length($part);

		return 0 if $self->{left} && $self->{received} > $self->{left};
	}

	return 1;
}

sub chunks {
	my ($self) = @_;

	while (1) {
		my $end;

		while (($end = index($self->{buffer}, "\r\n")) < 0) {
			return 0 unless fill($self);
		}

		my $n = hex(substr($self->{buffer}, 0, $end));

		substr($self->{buffer}, 0, $end + 2, '');

		return 0 unless take($self, $n);

		while (length($self->{buffer}) < 2) {
			return 0 unless fill($self);
		}

		substr($self->{buffer}, 0, 2, '');

		return 1 if $n == 0;
	}
}

1;
